package inplace

// books are the accounts of the ReplicaSets as they were observed, for the ledger.
func (v *view) books(p pace) Books {
	books := Books{Wanted: v.desired(), Lendable: int(v.Deployment.maxSurge())}
	for _, s := range v.sets {
		books.Accounts = append(books.Accounts, Account{Name: s.rs.Name, Replicas: s.size(), Pods: len(s.pods),
			Leaving: len(p.leaving[s]), Ending: s.ending(), Borrowed: s.loan, Lost: s.lost()})
	}
	return books
}

// post has the replicas of the ReplicaSet changed. Nothing else changes them.
func (v *view) post(s *replicaSet, by int, why Cause) { v.ledger.Post(s.rs.Name, by, why) }

// balance is what becomes of all replicas, or why the update is given back: replicas that do not add up are never written.
func (v *view) balance(p pace) (Balance, *Reason) {
	balance, err := v.ledger.Close(v.books(p))
	if err != nil {
		return nil, &Reason{Code: CodeUnbalanced, Message: "the replicas that Stayput would write do not add up: " + err.Error()}
	}
	return balance, nil
}

// becomes is how many replicas the ReplicaSet gets.
func (s *replicaSet) becomes(balance Balance) int { return s.size() + balance[s.rs.Name] }
