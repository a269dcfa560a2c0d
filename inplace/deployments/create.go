package deployments

import (
	"github.com/stayput/stayput/inplace/steps"
)

// recreates reports whether Stayput has to create the new ReplicaSet: with strategy Recreate the native controller would create it only
// after scaling everything down, which is held.
func (v *Planner) recreates() bool { return !v.deployment.Rolls() && !v.paused() }

func (v *Planner) create() {
	step, reason := NewReplicaSet(v.deployment, v.rollout.ReplicaSets)
	if reason != nil { // Decision has returned it before
		panic(reason.Message)
	}
	v.plan.Step(step)
	v.plan.Phase(steps.PhaseWaiting, "create the new ReplicaSet")
}
