package deployments

import (
	"github.com/stayput/stayput/inplace/steps"
)

// recreates reports whether Stayput has to create the new ReplicaSet: with strategy Recreate the native controller would create it only
// after scaling everything down, which is held.
func (v *Planner) recreates() bool { return !v.Deployment.Rolls() && !v.paused() }

func (v *Planner) create() {
	step, reason := NewReplicaSet(v.Deployment, v.ReplicaSets)
	if reason != nil { // Decision has returned it before
		panic(reason.Message)
	}
	v.Step(step)
	v.Phase(steps.PhaseWaiting, "create the new ReplicaSet")
}
