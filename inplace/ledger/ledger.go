package ledger

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Who writes the replicas of a ReplicaSet has pods created or deleted, and while an update is held nobody writes them but us. So whatever has
// reason to change them only posts an entry that names its cause, and before anything is written the books are closed: what a cause takes or
// gives must be covered by what was observed, and all of them together must not have more pods created than are wanted and borrowed.

// Cause is why the replicas of an account change.
type Cause string

// The causes.
const (
	CauseScaled       Cause = "scaled"        // the user wants more, or less
	CauseSurge        Cause = "surge"         // more, for as long as the update needs them
	CauseSurgeRemoved Cause = "surge removed" // of those borrowed
	CauseMoved        Cause = "moved"         // pods leave for another ReplicaSet
	CauseCounted      Cause = "counted"       // pods are there beyond the replicas: they have come, or stay after all
	CausePassedOn     Cause = "passed on"     // what cannot be created here is to be created elsewhere
	CauseReplaced     Cause = "replaced"      // pods that nobody hears of are to have others in their place
)

// Account is one ReplicaSet as it was observed.
type Account struct {
	Name string
	// Replicas it has, and Pods that live.
	Replicas, Pods int
	// Leaving are the pods that move elsewhere now, Ending those given back for which it may have been lowered already.
	Leaving, Ending int
	// Surge replicas, and Lost pods.
	Surge, ToReplace int
}

// uncounted is how many pods are there beyond the replicas.
func (a Account) uncounted() int { return max(0, a.Pods-a.Replicas) }

// covered is by how much the account may be lowered for so many of its pods: for those that are uncounted it was lowered before.
func (a Account) covered(pods int) int { return min(0, a.uncounted()-pods) }

// limits are how far the replicas may go down and up.
type limits struct{ down, up int }

const unlimited = math.MaxInt32

// limits of a cause in this account. One that is not among the causes may change nothing.
func (a Account) limits(why Cause) limits {
	switch why {
	case CauseScaled:
		return limits{down: -a.Replicas, up: unlimited}
	case CauseSurge:
		return limits{up: unlimited}
	case CauseSurgeRemoved:
		return limits{down: a.covered(a.Surge)}
	case CauseMoved:
		return limits{down: max(-a.Leaving, a.covered(a.Leaving+a.Ending))}
	case CauseCounted:
		return limits{up: a.uncounted()}
	case CausePassedOn:
		return limits{down: min(0, a.Pods-a.Replicas)}
	case CauseReplaced:
		return limits{down: a.covered(a.ToReplace)}
	}
	return limits{}
}

// Books are all accounts of one workload.
type Books struct {
	// Wanted is what the user wants, Lendable how much more may be borrowed.
	Wanted, MaxSurge int
	Accounts         []Account
}

// limits of a cause in all accounts together: scaling stops where the user wants it to.
func (b Books) limits(why Cause) limits {
	switch lacking := b.Wanted + b.surge() - b.replicas(); why {
	case CauseScaled:
		return limits{down: min(0, lacking), up: max(0, lacking)}
	case CauseSurge:
		return limits{up: max(0, b.MaxSurge-b.surge())}
	default:
		return limits{down: -unlimited, up: unlimited}
	}
}

func (b Books) sum(of func(Account) int) int {
	sum := 0
	for _, a := range b.Accounts {
		sum += of(a)
	}
	return sum
}

func (b Books) replicas() int { return b.sum(func(a Account) int { return a.Replicas }) }

func (b Books) surge() int { return b.sum(func(a Account) int { return a.Surge }) }

// Entry is by how much an account changes, and why.
type Entry struct {
	Account string
	By      int
	Why     Cause
}

// String is the entry in a few words.
func (e Entry) String() string { return fmt.Sprintf("%s %+d %s", e.Account, e.By, e.Why) }

// Ledger is what one plan posts. Whatever posts knows only of its own; nothing is true before the books are closed.
type Ledger []Entry

// Post enters a change; none is no entry.
func (l *Ledger) Post(account string, by int, why Cause) {
	if by != 0 {
		*l = append(*l, Entry{account, by, why})
	}
}

// Balance is by how much accounts change in books that are right.
type Balance map[string]int

// Close tells what becomes of the accounts, or why the entries cannot be right.
func (l Ledger) Close(books Books) (Balance, error) {
	balance := Balance{}
	for _, e := range l {
		balance[e.Account] += e.By
	}
	var wrong []string
	for _, a := range books.Accounts {
		wrong = append(wrong, l.Of(a.Name).beyond(a.Name, a.limits)...)
		if left := a.Replicas + balance[a.Name]; left < 0 {
			wrong = append(wrong, fmt.Sprintf("%s would have %d replicas", a.Name, left))
		}
	}
	wrong = slices.Concat(wrong, l.unknown(books), l.beyond("all", books.limits), l.overfull(books, balance))
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%s (%s; %d are wanted, %d surge, and there are %d)", strings.Join(wrong, ", "), l, books.Wanted, books.surge(), books.replicas())
	}
	return balance, nil
}

// String lists the entries.
func (l Ledger) String() string {
	var entries []string
	for _, e := range l {
		entries = append(entries, e.String())
	}
	return strings.Join(entries, ", ")
}

// Of is what was posted to one account.
func (l Ledger) Of(account string) Ledger {
	return slices.DeleteFunc(slices.Clone(l), func(e Entry) bool { return e.Account != account })
}

// By is by how much all of that would change the replicas.
func (l Ledger) By() int {
	down, up := l.turnover(func(Cause) bool { return true })
	return down + up
}

// turnover is what causes take and what they give.
func (l Ledger) turnover(chosen func(Cause) bool) (down, up int) {
	for _, e := range l {
		if chosen(e.Why) {
			down, up = down+min(0, e.By), up+max(0, e.By)
		}
	}
	return down, up
}

// unknown are the entries for which there is no account.
func (l Ledger) unknown(books Books) []string {
	var wrong []string
	for _, e := range l {
		if !slices.ContainsFunc(books.Accounts, func(a Account) bool { return a.Name == e.Account }) {
			wrong = append(wrong, "there is no "+e.Account)
		}
	}
	return wrong
}

// beyond says which causes went beyond their limits. What one gives does not make up for what it takes.
func (l Ledger) beyond(where string, of func(Cause) limits) []string {
	var wrong []string
	for i, e := range l {
		if slices.ContainsFunc(l[:i], func(before Entry) bool { return before.Why == e.Why }) {
			continue
		}
		down, up := l.turnover(func(why Cause) bool { return why == e.Why })
		limits := of(e.Why)
		if down < limits.down {
			wrong = append(wrong, fmt.Sprintf("%s %+d %s instead of %d at most", where, down, e.Why, limits.down))
		}
		if up > limits.up {
			wrong = append(wrong, fmt.Sprintf("%s %+d %s instead of %+d at most", where, up, e.Why, limits.up))
		}
	}
	return wrong
}

// overfull: pods would be created beyond those that are wanted and borrowed. Those that are just moving count, and so do those too many by now.
func (l Ledger) overfull(books Books, balance Balance) []string {
	surged, back := l.turnover(func(why Cause) bool { return why == CauseSurge || why == CauseSurgeRemoved })
	now := books.sum(func(a Account) int { return max(a.Replicas, a.Pods) })
	then := books.sum(func(a Account) int { return max(a.Replicas+balance[a.Name], a.Pods) })
	if most := max(now, books.Wanted+books.surge()+surged+back); then > most {
		return []string{fmt.Sprintf("there would be %d pods instead of %d at most", then, most)}
	}
	return nil
}
