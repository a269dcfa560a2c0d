package podstate

import (
	"cmp"

	"github.com/stayput/stayput/inplace"
)

// Budget is how many more pods may be taken out of service. A pod that is Ready serves, though it may not be available yet. Natively such a
// pod costs nothing, and soon after an update that is every pod: an edit replaces all of them, of which each takes its time to stop.
// Restarts in place are so much faster that none would be left. So it costs here, and as many pods keep serving as must be available.
type Budget struct {
	// Available is how many more available pods may become unavailable, Serving how many more pods may stop serving, whether they are
	// available or not.
	Available, Serving int
}

// BudgetOf returns the budget, given how many more of the pods that are counted may go.
func BudgetOf(left func(counts func(*State) bool) int) Budget {
	return Budget{
		Available: left(func(s *State) bool { return s.Available }),
		Serving:   left(func(s *State) bool { return s.Serving }),
	}
}

// Allows reports whether the pod may be taken out of service. One that does not serve costs nothing. One that a startup probe may revoke
// counts for nothing, and may serve all the same. So it goes only where one that serves might.
func (b Budget) Allows(s *State) bool {
	mayServe := s.Serving || s.Ready() && s.Unproved > 0
	return (b.Serving > 0 || !mayServe) && (b.Available > 0 || !s.Available)
}

// Take counts the pod as taken out of service.
func (b *Budget) Take(s *State) {
	if s.Serving {
		b.Serving--
	}
	if s.Available {
		b.Available--
	}
}

// And returns the budget with that many pods more.
func (b Budget) And(more int) Budget { return Budget{b.Available + more, b.Serving + more} }

// Left returns how many more pods may go: available ones, as long as those may.
func (b Budget) Left() int {
	if b.Available > 0 {
		return b.Available
	}
	return b.Serving
}

// ByCost orders pods, as slices.SortFunc does: first those that do not serve, last those that are available.
func ByCost(a, b *State) int {
	return cmp.Or(inplace.TrueFirst(!a.Serving, !b.Serving), inplace.TrueFirst(!a.Available, !b.Available))
}
