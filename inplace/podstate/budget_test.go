package podstate_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
)

// TestWhichPodsABudgetAllows: a pod that serves must not go if none may stop serving, and a pod that does not serve costs nothing, so it
// must not wait for others.
func TestWhichPodsABudgetAllows(t *testing.T) {
	none, oneThatServes := podstate.Budget{}, podstate.Budget{Serving: 1}
	for name, c := range map[string]struct {
		state  podstate.State
		change func(*corev1.Pod)
		budget podstate.Budget
		want   bool
	}{
		"available":                           {podstate.State{Serving: true, Available: true}, nil, oneThatServes, false},
		"serves, and is not available yet":    {podstate.State{Serving: true}, nil, oneThatServes, true},
		"serves, and none may stop":           {podstate.State{Serving: true}, nil, none, false},
		"not Ready":                           {podstate.State{}, fixture.Unready, none, true},
		"not Ready, and a startup probe runs": {podstate.State{Unproved: time.Second}, fixture.Unready, none, true},
		"Ready, and a startup probe may revoke it": {podstate.State{Unproved: time.Second}, nil, none,
			false},
		"Ready by its old containers": {podstate.State{}, nil, none, true},
	} {
		r := fixture.New(1, fixture.App{Image: "v1"})
		c.state.Pod = fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), c.change)
		if got := c.budget.Allows(&c.state); got != c.want {
			t.Errorf("%s: allowed %t", name, got)
		}
	}
}

// TestWhatIsLeftOfABudget: users are told how many more pods may restart.
func TestWhatIsLeftOfABudget(t *testing.T) {
	for budget, want := range map[podstate.Budget]int{
		{Available: 2, Serving: 3}:  2,
		{Available: 0, Serving: 3}:  3,
		{Available: -1, Serving: 1}: 1,
		{}:                          0,
	} {
		if got := budget.Left(); got != want {
			t.Errorf("%+v: %d are left, want %d", budget, got, want)
		}
	}
}
