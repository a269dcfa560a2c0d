package deployments

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/ledger"
	"github.com/stayput/stayput/inplace/replicas"
)

// books are the accounts of the ReplicaSets as they were observed, for the ledger.
func (v *Planner) books(p pace) ledger.Books {
	books := ledger.Books{Wanted: v.desired(), MaxSurge: int(v.Deployment.MaxSurge())}
	for _, s := range v.Sets {
		books.Accounts = append(books.Accounts, ledger.Account{Name: s.Rs.Name, Replicas: s.Size(), Pods: len(s.Pods),
			Leaving: len(p.leaving[s]), Ending: s.Ending(), Surge: s.Surge, ToReplace: s.ToReplace()})
	}
	return books
}

// Post has the replicas of the ReplicaSet changed. Nothing else changes them.
func (v *Planner) Post(s *replicas.Set, by int, why ledger.Cause) { v.ledger.Post(s.Rs.Name, by, why) }

// balance is what becomes of all replicas, or why the update is given back: replicas that do not add up are never written.
func (v *Planner) balance(p pace) (ledger.Balance, *inplace.Reason) {
	balance, err := v.ledger.Close(v.books(p))
	if err != nil {
		return nil, &inplace.Reason{Code: inplace.CodeUnbalanced, Message: "the replicas that Stayput would write do not add up: " + err.Error()}
	}
	return balance, nil
}
