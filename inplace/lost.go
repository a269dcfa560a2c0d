package inplace

import corev1 "k8s.io/api/core/v1"

// lose finds the pods that are lost.
func (v *view) lose() {
	for _, m := range v.members {
		silent := unheard(v.nodesByName[m.pod.Spec.NodeName])
		m.unheard = silent && v.Mode.Manages()
		m.lost = silent && m.waitsForKubelet(m.owner == v.target)
	}
}

// waitsForKubelet: it is not Ready, and only its kubelet can do something about it. A target's that was patched in the seconds before nobody heard
// of its node waits like one that has yet to be.
func (m *member) waitsForKubelet(isTargets bool) bool {
	waits := !isTargets && m.toRestart() || isTargets && !m.arrived && !m.move.observed(m.pod)
	return waits && !m.ready()
}

// unheard tells whether nobody hears of the node's kubelet; of one that is not known, nobody can say.
func unheard(node *corev1.Node) bool { return node != nil && silent(node) }

// withLost are the ReplicaSets that are to have others in place of their lost pods. More of those than may be missed are no lost node but
// an outage, in which new pods help nobody. If other pods are not Ready, nobody could say which of them would be deleted. And a lost pod may
// still run, which with strategy Recreate no other may do at the same time.
func (v *view) withLost() []*replicaSet {
	var sets []*replicaSet
	all := 0
	for _, s := range v.sets {
		lost := s.lost()
		if all += lost; lost > 0 && lost == s.unready() {
			sets = append(sets, s)
		}
	}
	if v.paused() || !v.Deployment.rolls() || all > max(1, int(v.Deployment.maxUnavailable())) {
		return nil
	}
	return sets
}

// replaceLost lowers them, so that their controllers delete the lost pods, which are not Ready, before others; as the native controller would
// (cleanupUnhealthyReplicas in pkg/controller/deployment/rolling.go). Pods in their place are created as after any scaling.
func (v *view) replaceLost() {
	for _, s := range v.withLost() {
		v.post(s, -min(s.lost(), s.size()), CauseReplaced)
	}
}

func (s *replicaSet) lost() int {
	return s.count(func(m *member) bool { return m.lost })
}
