package deployments

import (
	"github.com/stayput/stayput/inplace/ledger"
	"github.com/stayput/stayput/inplace/nodes"
	"github.com/stayput/stayput/inplace/replicas"
)

// lose finds the pods that are lost.
func (v *View) lose() {
	for _, m := range v.Members {
		m.Silent = nodes.KnownSilent(v.nodesByName[m.Pod.Spec.NodeName])
		m.Lost = m.Silent && m.WaitsForKubelet(m.Owner == v.Target)
	}
}

// withLost are the ReplicaSets that are to have others in place of their lost pods. More of those than may be missed are no lost node but
// an outage, in which new pods help nobody. If other pods are not Ready, nobody could say which of them would be deleted. And a lost pod may
// still run, which with strategy Recreate no other may do at the same time.
func (v *View) withLost() []*replicas.Set {
	var sets []*replicas.Set
	all := 0
	for _, s := range v.Sets {
		lost := s.Lost()
		if all += lost; lost > 0 && lost == s.Unready() {
			sets = append(sets, s)
		}
	}
	if v.paused() || !v.Deployment.Rolls() || all > max(1, int(v.Deployment.MaxUnavailable())) {
		return nil
	}
	return sets
}

// replaceLost lowers them, so that their controllers delete the lost pods, which are not Ready, before others; as the native controller would
// (cleanupUnhealthyReplicas in pkg/controller/deployment/rolling.go). Pods in their place are created as after any scaling.
func (v *View) replaceLost() {
	for _, s := range v.withLost() {
		v.Post(s, -min(s.Lost(), s.Size()), ledger.CauseReplaced)
	}
}
