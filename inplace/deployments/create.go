package deployments

import (
	"github.com/stayput/stayput/inplace/native"
	"github.com/stayput/stayput/inplace/steps"
)

// recreates: the native controller creates the target only after it has scaled everything down, which is held.
func (v *Planner) recreates() bool { return !v.Deployment.Rolls() && !v.paused() }

func (v *Planner) create() {
	step, reason := native.NewReplicaSet(v.Deployment, v.ReplicaSets)
	if reason != nil { // Verdict asked before
		panic(reason.Message)
	}
	v.Step(step)
	v.Phase(steps.PhaseWaiting, "create the new ReplicaSet")
}
