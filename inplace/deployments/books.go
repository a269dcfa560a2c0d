package deployments

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/replicas"
)

// books returns the accounts of the ReplicaSets, as observed, for the ledger.
func (v *Planner) books(p pace) replicas.Books {
	books := replicas.Books{Wanted: v.desired(), MaxSurge: int(v.deployment.MaxSurge())}
	for _, s := range v.Sets {
		books.Accounts = append(books.Accounts, replicas.Account{Name: s.Rs.Name, Replicas: s.Size(), Pods: len(s.Pods),
			Leaving: len(p.leaving[s]), Ending: s.Ending(), Surge: s.Surge, ToReplace: s.ToReplace()})
	}
	return books
}

// Post posts a change of the ReplicaSet's replicas to the ledger. Replicas change in no other way.
func (v *Planner) Post(s *replicas.Set, by int, why replicas.Cause) {
	v.ledger.Post(s.Rs.Name, by, why)
}

// balance returns the changes of all replicas, or why the update falls back: replicas that do not add up are never written.
func (v *Planner) balance(p pace) (replicas.Balance, *inplace.Reason) {
	balance, err := v.ledger.Close(v.books(p))
	if err != nil {
		return nil, &inplace.Reason{Code: inplace.CodeUnbalanced, Message: "the replicas that Stayput would write do not add up: " + err.Error()}
	}
	return balance, nil
}
