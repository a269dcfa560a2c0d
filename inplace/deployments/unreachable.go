package deployments

import (
	"github.com/stayput/stayput/inplace/replicas"
)

// findToReplace finds the pods on unreachable nodes that are to be replaced.
func (v *Planner) findToReplace() {
	for _, m := range v.Members {
		m.ToReplace = m.Unreachable && m.WaitsForKubelet(m.Owner == v.NewRS)
	}
}

// withPodsToReplace returns the ReplicaSets whose pods on unreachable nodes are to be replaced. If there are more such pods than may be
// unavailable, the cause is an outage rather than a lost node, and new pods do not help. If other pods are not Ready, it is not
// predictable which of them the controller would delete. And a pod on an unreachable node may still run: with strategy Recreate no other
// pod may run at the same time.
func (v *Planner) withPodsToReplace() []*replicas.Set {
	var sets []*replicas.Set
	all := 0
	for _, s := range v.Sets {
		unreachable := s.ToReplace()
		if all += unreachable; unreachable > 0 && unreachable == s.Unready() {
			sets = append(sets, s)
		}
	}
	if v.paused() || !v.deployment.Rolls() || all > max(1, int(v.deployment.MaxUnavailable())) {
		return nil
	}
	return sets
}

// replaceUnreachable lowers the replicas of those ReplicaSets, so that their controllers delete the pods on unreachable nodes, which are
// not Ready, before others; the native controller would do the same (cleanupUnhealthyReplicas in pkg/controller/deployment/rolling.go).
// Replacements are created as after any scaling.
func (v *Planner) replaceUnreachable() {
	for _, s := range v.withPodsToReplace() {
		v.Post(s, -min(s.ToReplace(), s.Size()), replicas.CauseReplaced)
	}
}
