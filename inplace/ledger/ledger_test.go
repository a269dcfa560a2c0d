package ledger

import (
	"maps"
	"strings"
	"testing"
)

// Three pods that the user wants, all of them of a.
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
		"pods move":             {still(Account{Replicas: 3, Pods: 3, Leaving: 2}), Ledger{{"a", -2, CauseMoved}}, Balance{"a": -2}},
		"another moves along":   {still(Account{Replicas: 2, Pods: 3, Leaving: 2}), Ledger{{"a", -1, CauseMoved}}, Balance{"a": -1}},
		"pods move, one is gone": {still(Account{Replicas: 3, Pods: 2, Leaving: 1}), Ledger{{"a", -1, CausePassedOn}, {"a", -1, CauseMoved}},
			Balance{"a": -2}},
		"pods move beside one that goes": {still(Account{Replicas: 3, Pods: 4, Leaving: 1, Ending: 1}), Ledger{{"a", -1, CauseMoved}}, Balance{"a": -1}},
		"pods have come":                 {still(Account{Replicas: 1, Pods: 3}), Ledger{{"a", 2, CauseCounted}}, Balance{"a": 2}},
		"the user wants more":            {still(Account{Replicas: 1, Pods: 1}), Ledger{{"b", 2, CauseScaled}}, Balance{"b": 2}},
		"the user wants less, step by step": {Books{Wanted: 1, Accounts: []Account{{Name: "a", Replicas: 2, Pods: 2}, {Name: "b", Replicas: 2, Pods: 2}}},
			Ledger{{"a", -2, CauseScaled}}, Balance{"a": -2}},
		"the user wants less while one is surge": {still(Account{Replicas: 5, Pods: 5, Surge: 1}), Ledger{{"a", -1, CauseScaled}}, Balance{"a": -1}},
		"borrow":                                 {still(Account{Replicas: 3, Pods: 3}), Ledger{{"b", 1, CauseSurge}}, Balance{"b": 1}},
		"give back":                              {still(Account{Replicas: 4, Pods: 4, Surge: 1}), Ledger{{"a", -1, CauseSurgeRemoved}}, Balance{"a": -1}},
		"give back what never was":               {still(Account{Replicas: 4, Pods: 3, Surge: 1}), Ledger{{"a", -1, CauseSurgeRemoved}}, Balance{"a": -1}},
		"replace":                                {still(Account{Replicas: 3, Pods: 3, ToReplace: 1}), Ledger{{"a", -1, CauseReplaced}}, Balance{"a": -1}},
		"pass on":                                {still(Account{Replicas: 3, Pods: 1}), Ledger{{"a", -2, CausePassedOn}}, Balance{"a": -2}},
	} {
		t.Run(name, func(t *testing.T) {
			if balance, err := c.ledger.Close(c.books); err != nil || !maps.Equal(balance, c.want) {
				t.Errorf("the balance is %v: %v", balance, err)
			}
		})
	}
}

func TestLedgerThatDoesNot(t *testing.T) {
	for name, c := range map[string]struct {
		books  Books
		ledger Ledger
		want   string
	}{
		"more move than leave":                  {still(Account{Replicas: 3, Pods: 3, Leaving: 1}), Ledger{{"a", -2, CauseMoved}}, "a -2 moved instead of -1 at most"},
		"the same pod moves twice":              {still(Account{Replicas: 2, Pods: 3, Leaving: 1}), Ledger{{"a", -1, CauseMoved}}, "a -1 moved instead of 0 at most"},
		"one that was never created moves":      {still(Account{Replicas: 3, Pods: 2, Leaving: 1}), Ledger{{"a", -2, CauseMoved}}, "a -2 moved instead of -1 at most"},
		"who moves comes at once":               {still(Account{Replicas: 3, Pods: 3, Leaving: 1}), Ledger{{"a", -1, CauseMoved}, {"b", 1, CauseMoved}}, "b +1 moved instead of +0 at most"},
		"nobody has come":                       {still(Account{Replicas: 2, Pods: 3}), Ledger{{"b", 1, CauseCounted}}, "b +1 counted instead of +0 at most"},
		"it is counted twice":                   {still(Account{Replicas: 2, Pods: 3}), Ledger{{"a", 1, CauseCounted}, {"a", 1, CauseCounted}}, "a +2 counted instead of +1 at most"},
		"the user does not want that many":      {still(Account{Replicas: 2, Pods: 2}), Ledger{{"a", 1, CauseScaled}, {"b", 1, CauseScaled}}, "all +2 scaled instead of +1 at most"},
		"nor that few":                          {still(Account{Replicas: 4, Pods: 4}), Ledger{{"a", -2, CauseScaled}}, "all -2 scaled instead of -1 at most"},
		"from one to another":                   {still(Account{Replicas: 3, Pods: 3}), Ledger{{"a", -1, CauseScaled}, {"b", 1, CauseScaled}}, "all -1 scaled instead of 0 at most, all +1 scaled"},
		"borrowed ones are for the update":      {still(Account{Replicas: 4, Pods: 4, Surge: 1}), Ledger{{"a", -1, CauseScaled}}, "all -1 scaled instead of 0 at most"},
		"created while others are on their way": {Books{Wanted: 3, Accounts: []Account{{Name: "a", Replicas: 2, Pods: 3}, {Name: "b"}}}, Ledger{{"b", 1, CauseScaled}}, "there would be 4 pods instead of 3 at most"},
		"more than may be surge":                {still(Account{Replicas: 3, Pods: 3}), Ledger{{"b", 2, CauseSurge}}, "all +2 surge instead of +1 at most"},
		"borrowed before":                       {still(Account{Replicas: 4, Pods: 4, Surge: 1}), Ledger{{"b", 1, CauseSurge}}, "all +1 surge instead of +0 at most"},
		"borrowed while others are too many":    {still(Account{Replicas: 5, Pods: 5}), Ledger{{"b", 1, CauseSurge}}, "there would be 6 pods instead of 5 at most"},
		"surge removed and not surge":           {still(Account{Replicas: 3, Pods: 3}), Ledger{{"a", -1, CauseSurgeRemoved}}, "a -1 surge removed instead of 0 at most"},
		"surge removed twice":                   {still(Account{Replicas: 3, Pods: 4, Surge: 1}), Ledger{{"a", -1, CauseSurgeRemoved}}, "a -1 surge removed instead of 0 at most"},
		"surge removed by another":              {still(Account{Replicas: 4, Pods: 4, Surge: 1}), Ledger{{"b", -1, CauseSurgeRemoved}}, "b would have -1 replicas"},
		"replaced and not lost":                 {still(Account{Replicas: 3, Pods: 3}), Ledger{{"a", -1, CauseReplaced}}, "a -1 replaced instead of 0 at most"},
		"replaced twice":                        {still(Account{Replicas: 2, Pods: 3, ToReplace: 1}), Ledger{{"a", -1, CauseReplaced}}, "a -1 replaced instead of 0 at most"},
		"passed on although it is there":        {still(Account{Replicas: 3, Pods: 3}), Ledger{{"a", -1, CausePassedOn}}, "a -1 passed on instead of 0 at most"},
		"passed on at once":                     {still(Account{Replicas: 3, Pods: 2}), Ledger{{"a", -1, CausePassedOn}, {"b", 1, CausePassedOn}}, "b +1 passed on instead of +0 at most"},
		"less than none":                        {still(Account{Replicas: 1, Pods: 1, Leaving: 1, ToReplace: 1}), Ledger{{"a", -1, CauseMoved}, {"a", -1, CauseReplaced}}, "a would have -1 replicas"},
		"nobody's":                              {still(Account{Replicas: 2, Pods: 2}), Ledger{{"c", 1, CauseScaled}}, "there is no c"},
		"for no cause":                          {still(Account{Replicas: 2, Pods: 2}), Ledger{{"a", 1, ""}}, "a +1  instead of +0 at most"},
	} {
		t.Run(name, func(t *testing.T) {
			if balance, err := c.ledger.Close(c.books); err == nil || balance != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the balance is %v: %v", balance, err)
			}
		})
	}
}

// Whoever reads the reason has no other trace of what went wrong.
func TestLedgerTellsAllThatItKnows(t *testing.T) {
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
