package deployments

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/steps"
)

// PlanWith returns the plan of a planner that also posts those changes of replicas.
func (r Rollout) PlanWith(posts Ledger) steps.Plan {
	return engine.Plan(func(*inplace.Reason) engine.Planner { return erring{planner{r.observed()}, posts} })
}

type erring struct {
	planner
	posts Ledger
}

func (e erring) Proceed() *inplace.Reason {
	pace := e.pacer().decide()
	changes := e.changes(pace)
	changes.ledger = append(changes.ledger, e.posts...)
	return e.write(pace, changes)
}
