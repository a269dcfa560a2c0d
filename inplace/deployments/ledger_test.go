package deployments

import (
	"maps"
	"strings"
	"testing"
)

// still returns the books of a workload whose user wants three pods, all of which belong to the account named a.
func still(a Account) Books {
	a.Name = "a"
	return Books{Wanted: 3, MaxSurge: 1, Accounts: []Account{a, {Name: "b"}}}
}

func TestLedgerThatAddsUp(t *testing.T) {
	for name, c := range map[string]struct {
		books  Books
		ledger Ledger
		want   Balance
	}{
		"nothing":               {still(Account{Replicas: 3, Pods: 3}), nil, Balance{}},
		"nothing, out of order": {still(Account{Replicas: 7, Pods: 1}), nil, Balance{}},
		"pods move": {still(Account{Replicas: 3, Pods: 3, Leaving: 2}), Ledger{{"a", -2, CauseMoved}},
			Balance{"a": -2}},
		"another pod moves too": {still(Account{Replicas: 2, Pods: 3, Leaving: 2}), Ledger{{"a", -1, CauseMoved}},
			Balance{"a": -1}},
		"pods move, one is gone": {still(Account{Replicas: 3, Pods: 2, Leaving: 1}), Ledger{{"a", -1, CausePassedOn}, {"a", -1, CauseMoved}},
			Balance{"a": -2}},
		"pods move while a surge pod is removed": {still(Account{Replicas: 3, Pods: 4, Leaving: 1, Ending: 1}), Ledger{{"a", -1, CauseMoved}},
			Balance{"a": -1}},
		"pods have moved here": {still(Account{Replicas: 1, Pods: 3}), Ledger{{"a", 2, CauseCounted}},
			Balance{"a": 2}},
		"the user wants more": {still(Account{Replicas: 1, Pods: 1}), Ledger{{"b", 2, CauseScaled}},
			Balance{"b": 2}},
		"the user wants fewer, step by step": {
			Books{Wanted: 1, Accounts: []Account{{Name: "a", Replicas: 2, Pods: 2}, {Name: "b", Replicas: 2, Pods: 2}}},
			Ledger{{"a", -2, CauseScaled}}, Balance{"a": -2}},
		"the user wants fewer while one is surge": {still(Account{Replicas: 5, Pods: 5, Surge: 1}), Ledger{{"a", -1, CauseScaled}},
			Balance{"a": -1}},
		"add a surge pod": {still(Account{Replicas: 3, Pods: 3}), Ledger{{"b", 1, CauseSurge}}, Balance{"b": 1}},
		"remove a surge pod": {still(Account{Replicas: 4, Pods: 4, Surge: 1}), Ledger{{"a", -1, CauseSurgeRemoved}},
			Balance{"a": -1}},
		"remove a surge pod that was never created": {still(Account{Replicas: 4, Pods: 3, Surge: 1}), Ledger{{"a", -1, CauseSurgeRemoved}},
			Balance{"a": -1}},
		"replace an unreachable pod": {still(Account{Replicas: 3, Pods: 3, ToReplace: 1}), Ledger{{"a", -1, CauseReplaced}},
			Balance{"a": -1}},
		"pass on pods that cannot be created": {still(Account{Replicas: 3, Pods: 1}), Ledger{{"a", -2, CausePassedOn}},
			Balance{"a": -2}},
	} {
		t.Run(name, func(t *testing.T) {
			if balance, err := c.ledger.Close(c.books); err != nil || !maps.Equal(balance, c.want) {
				t.Errorf("the balance is %v: %v", balance, err)
			}
		})
	}
}

func TestLedgerThatDoesNotAddUp(t *testing.T) {
	for name, c := range map[string]struct {
		books  Books
		ledger Ledger
		want   string
	}{
		"more are moved than leave": {still(Account{Replicas: 3, Pods: 3, Leaving: 1}), Ledger{{"a", -2, CauseMoved}},
			"a -2 moved instead of -1 at most"},
		"the same pod moves twice": {still(Account{Replicas: 2, Pods: 3, Leaving: 1}), Ledger{{"a", -1, CauseMoved}},
			"a -1 moved instead of 0 at most"},
		"a pod that was never created moves": {still(Account{Replicas: 3, Pods: 2, Leaving: 1}), Ledger{{"a", -2, CauseMoved}},
			"a -2 moved instead of -1 at most"},
		"a pod that moves is counted at once": {still(Account{Replicas: 3, Pods: 3, Leaving: 1}),
			Ledger{{"a", -1, CauseMoved}, {"b", 1, CauseMoved}},
			"b +1 moved instead of +0 at most"},
		"no pod has moved here": {still(Account{Replicas: 2, Pods: 3}), Ledger{{"b", 1, CauseCounted}},
			"b +1 counted instead of +0 at most"},
		"a pod is counted twice": {still(Account{Replicas: 2, Pods: 3}), Ledger{{"a", 1, CauseCounted}, {"a", 1, CauseCounted}},
			"a +2 counted instead of +1 at most"},
		"the user does not want that many": {still(Account{Replicas: 2, Pods: 2}), Ledger{{"a", 1, CauseScaled}, {"b", 1, CauseScaled}},
			"all +2 scaled instead of +1 at most"},
		"the user does not want that few": {still(Account{Replicas: 4, Pods: 4}), Ledger{{"a", -2, CauseScaled}},
			"all -2 scaled instead of -1 at most"},
		"from one to another": {still(Account{Replicas: 3, Pods: 3}), Ledger{{"a", -1, CauseScaled}, {"b", 1, CauseScaled}},
			"all -1 scaled instead of 0 at most, all +1 scaled"},
		"a surge replica is removed by scaling": {still(Account{Replicas: 4, Pods: 4, Surge: 1}), Ledger{{"a", -1, CauseScaled}},
			"all -1 scaled instead of 0 at most"},
		"a pod is created while another moves": {
			Books{Wanted: 3, Accounts: []Account{{Name: "a", Replicas: 2, Pods: 3}, {Name: "b"}}}, Ledger{{"b", 1, CauseScaled}},
			"there would be 4 pods instead of 3 at most"},
		"more than maxSurge": {still(Account{Replicas: 3, Pods: 3}), Ledger{{"b", 2, CauseSurge}},
			"all +2 surge instead of +1 at most"},
		"more than maxSurge, some of it before": {still(Account{Replicas: 4, Pods: 4, Surge: 1}), Ledger{{"b", 1, CauseSurge}},
			"all +1 surge instead of +0 at most"},
		"surge on top of a surplus": {still(Account{Replicas: 5, Pods: 5}), Ledger{{"b", 1, CauseSurge}},
			"there would be 6 pods instead of 5 at most"},
		"surge removed that there is not": {still(Account{Replicas: 3, Pods: 3}), Ledger{{"a", -1, CauseSurgeRemoved}},
			"a -1 surge removed instead of 0 at most"},
		"surge removed twice": {still(Account{Replicas: 3, Pods: 4, Surge: 1}), Ledger{{"a", -1, CauseSurgeRemoved}},
			"a -1 surge removed instead of 0 at most"},
		"surge removed from another account": {still(Account{Replicas: 4, Pods: 4, Surge: 1}), Ledger{{"b", -1, CauseSurgeRemoved}},
			"b would have -1 replicas"},
		"replaced although none is unreachable": {still(Account{Replicas: 3, Pods: 3}), Ledger{{"a", -1, CauseReplaced}},
			"a -1 replaced instead of 0 at most"},
		"replaced twice": {still(Account{Replicas: 2, Pods: 3, ToReplace: 1}), Ledger{{"a", -1, CauseReplaced}},
			"a -1 replaced instead of 0 at most"},
		"passed on although the pod exists": {still(Account{Replicas: 3, Pods: 3}), Ledger{{"a", -1, CausePassedOn}},
			"a -1 passed on instead of 0 at most"},
		"passed on and created at once": {still(Account{Replicas: 3, Pods: 2}), Ledger{{"a", -1, CausePassedOn}, {"b", 1, CausePassedOn}},
			"b +1 passed on instead of +0 at most"},
		"fewer than 0": {still(Account{Replicas: 1, Pods: 1, Leaving: 1, ToReplace: 1}), Ledger{{"a", -1, CauseMoved}, {"a", -1, CauseReplaced}},
			"a would have -1 replicas"},
		"for no cause": {still(Account{Replicas: 2, Pods: 2}), Ledger{{"a", 1, ""}},
			"a +1  instead of +0 at most"},
	} {
		t.Run(name, func(t *testing.T) {
			if balance, err := c.ledger.Close(c.books); err == nil || balance != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the balance is %v: %v", balance, err)
			}
		})
	}
}

// TestLedgerErrorHasAllEntries: the error is the only trace of what went wrong, so it has all entries and numbers.
func TestLedgerErrorHasAllEntries(t *testing.T) {
	ledger := Ledger{}
	ledger.Post("a", -1, CauseMoved)
	ledger.Post("a", 0, CauseScaled)
	ledger.Post("b", 2, CauseSurge)
	_, err := ledger.Close(still(Account{Replicas: 4, Pods: 4, Leaving: 1, Surge: 1}))
	want := "all +2 surge instead of +0 at most (a -1 moved, b +2 surge; 3 are wanted, 1 surge, and there are 4)"
	if err == nil || err.Error() != want {
		t.Errorf("it says %v, want %s", err, want)
	}
}
