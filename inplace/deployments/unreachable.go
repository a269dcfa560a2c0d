package deployments

import (
	"github.com/stayput/stayput/inplace/ledger"
	"github.com/stayput/stayput/inplace/nodes"
	"github.com/stayput/stayput/inplace/replicas"
)

// findUnreachable finds the pods that are lost.
func (v *Planner) findUnreachable() {
	for _, m := range v.Members {
		m.Unreachable = nodes.KnownUnreachable(v.nodesByName[m.Pod.Spec.NodeName])
		m.ToReplace = m.Unreachable && m.WaitsForKubelet(m.Owner == v.NewRS)
	}
}

// withPodsToReplace are the ReplicaSets that are to have others in place of their lost pods. More of those than may be missed are no lost node but
// an outage, in which new pods help nobody. If other pods are not Ready, nobody could say which of them would be deleted. And a lost pod may
// still run, which with strategy Recreate no other may do at the same time.
func (v *Planner) withPodsToReplace() []*replicas.Set {
	var sets []*replicas.Set
	all := 0
	for _, s := range v.Sets {
		unreachable := s.ToReplace()
		if all += unreachable; unreachable > 0 && unreachable == s.Unready() {
			sets = append(sets, s)
		}
	}
	if v.paused() || !v.Deployment.Rolls() || all > max(1, int(v.Deployment.MaxUnavailable())) {
		return nil
	}
	return sets
}

// replaceUnreachable lowers them, so that their controllers delete the lost pods, which are not Ready, before others; as the native controller would
// (cleanupUnhealthyReplicas in pkg/controller/deployment/rolling.go). Pods in their place are created as after any scaling.
func (v *Planner) replaceUnreachable() {
	for _, s := range v.withPodsToReplace() {
		v.Post(s, -min(s.ToReplace(), s.Size()), ledger.CauseReplaced)
	}
}
