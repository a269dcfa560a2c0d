package deployments

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A change of a ReplicaSet's replicas makes its controller create or delete pods, and while an update is held only Stayput changes them.
// So code that has reason to change replicas only posts an entry with its cause, and the books are closed before anything is written:
// what a cause takes or gives must be covered by what was observed, and all causes together must not create more pods than the user
// wants, plus surge pods.

// Cause is why the replicas of an account change.
type Cause string

// The causes.
const (
	CauseScaled       Cause = "scaled"        // the user wants more, or fewer
	CauseSurge        Cause = "surge"         // more, for surge pods
	CauseSurgeRemoved Cause = "surge removed" // fewer, for surge pods
	CauseMoved        Cause = "moved"         // pods move to another ReplicaSet
	CauseCounted      Cause = "counted"       // there are more pods than replicas: pods have moved here, or have not left after all
	CausePassedOn     Cause = "passed on"     // another ReplicaSet is to create the pods that this one cannot create
	CauseReplaced     Cause = "replaced"      // pods on unreachable nodes are to be replaced
)

// Account is one ReplicaSet as it was observed.
type Account struct {
	Name string
	// Replicas of the ReplicaSet, and Pods that are live.
	Replicas, Pods int
	// Leaving are the pods that move to another ReplicaSet now. Ending are the surge pods being removed for which replicas may already have
	// been lowered.
	Leaving, Ending int
	// Surge are the replicas for surge pods, ToReplace the pods on unreachable nodes that are to be replaced.
	Surge, ToReplace int
}

// uncounted returns how many more pods than replicas there are.
func (a Account) uncounted() int { return max(0, a.Pods-a.Replicas) }

// covered returns by how much the account may be lowered for that many of its pods, as a negative number. For uncounted pods it was
// lowered before.
func (a Account) covered(pods int) int { return min(0, a.uncounted()-pods) }

// limits are how far the replicas may be lowered and raised.
type limits struct{ down, up int }

const unlimited = math.MaxInt32

// limits returns the limits of a cause in this account. An unknown cause may change nothing.
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

// Books are the accounts of one workload.
type Books struct {
	// Wanted is how many replicas the user wants, MaxSurge how many surge replicas there may be in addition.
	Wanted, MaxSurge int
	Accounts         []Account
}

// limits returns the limits of a cause in all accounts together: scaling ends at the number that the user wants.
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

// Entry is a change of an account, with its cause.
type Entry struct {
	Account string
	By      int
	Why     Cause
}

// String returns the entry in a few words.
func (e Entry) String() string { return fmt.Sprintf("%s %+d %s", e.Account, e.By, e.Why) }

// Ledger are the entries of one plan. Each is posted without knowledge of the others; none is valid before the books are closed.
type Ledger []Entry

// Post enters a change; a change by 0 is not entered.
func (l *Ledger) Post(account string, by int, why Cause) {
	if by != 0 {
		*l = append(*l, Entry{account, by, why})
	}
}

// Balance is by how much each account changes, in books that add up.
type Balance map[string]int

// Close returns by how much the accounts change, or an error that says why the entries cannot be right.
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
	wrong = slices.Concat(wrong, l.beyond("all", books.limits), l.overfull(books, balance))
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%s (%s; %d are wanted, %d surge, and there are %d)",
			strings.Join(wrong, ", "), l, books.Wanted, books.surge(), books.replicas())
	}
	return balance, nil
}

// String returns the list of entries.
func (l Ledger) String() string {
	var entries []string
	for _, e := range l {
		entries = append(entries, e.String())
	}
	return strings.Join(entries, ", ")
}

// Of returns the entries of one account.
func (l Ledger) Of(account string) Ledger {
	return slices.DeleteFunc(slices.Clone(l), func(e Entry) bool { return e.Account != account })
}

// By returns by how much all entries together change the replicas.
func (l Ledger) By() int {
	down, up := l.turnover(func(Cause) bool { return true })
	return down + up
}

// turnover returns the sums of what the chosen causes take and of what they give.
func (l Ledger) turnover(chosen func(Cause) bool) (down, up int) {
	for _, e := range l {
		if chosen(e.Why) {
			down, up = down+min(0, e.By), up+max(0, e.By)
		}
	}
	return down, up
}

// beyond returns an error text for each cause that exceeds its limits. What a cause gives does not make up for what it takes.
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

// overfull returns an error text if there would be more pods than the user wants, plus surge pods. Pods that are moving count, and a
// surplus that exists already is allowed.
func (l Ledger) overfull(books Books, balance Balance) []string {
	surged, back := l.turnover(func(why Cause) bool { return why == CauseSurge || why == CauseSurgeRemoved })
	now := books.sum(func(a Account) int { return max(a.Replicas, a.Pods) })
	then := books.sum(func(a Account) int { return max(a.Replicas+balance[a.Name], a.Pods) })
	if most := max(now, books.Wanted+books.surge()+surged+back); then > most {
		return []string{fmt.Sprintf("there would be %d pods instead of %d at most", then, most)}
	}
	return nil
}
