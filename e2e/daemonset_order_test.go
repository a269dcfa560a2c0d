//go:build e2e

package e2e

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	canaryNodesAnnotation = "stayput.dev/canary-nodes"
	topologyAnnotation    = "stayput.dev/update-by-topology"
)

// labelNodes labels each of the real nodes with the value at its place, or not at all if the value is empty. The label belongs to this
// scenario, and is removed when the judge is done. It returns the names of the nodes.
func (s *scenario) labelNodes(values ...string) []string {
	s.Helper()
	nodes := s.realNodes()
	for i, value := range values {
		if value == "" {
			continue
		}
		s.afterwards = append(s.afterwards, func() { onCluster(s.T, "label", "node", nodes[i], membership(s)+"-") })
		onCluster(s.T, "label", "node", nodes[i], membership(s)+"="+value)
	}
	return nodes
}

// canaryNodeFails checks that a bad image stops only the pod on the canary node, that the status says why the others wait, and that an undo
// gets through.
func canaryNodeFails(t *testing.T) {
	s := newDaemonScenario(t, unpulled)
	s.install(agent(budget("100%", "0")))
	nodes := s.labelNodes("canary")
	s.kubectl("", "annotate", agents, canaryNodesAnnotation+"="+membership(s))
	canary := s.podOn(agents, nodes[0])
	s.inPlace(agents, restarts{"app": anyNumber}, func() {
		s.setImage(agents, "app=crash")
		s.fails(agents, "CrashLoopBackOff")
		s.answers("", 0, []string{"waiting pod " + canary.Name + " on node " + nodes[0] + " (a canary node) to be updated and available"},
			"status", agents)
		s.rollout("undo", agents)
	})
	s.runs(agents, "v1")
	for _, node := range nodes[1:] {
		if restarted := restartsOf(s.podOn(agents, node)); restarted["app"] > 0 {
			s.Errorf("the pod on %s, which is no canary node, has restarted: %v", node, restarted)
		}
	}
}

// zoneAfterZone checks that the nodes with one value of a label are updated after the other, and a node without the label last. In each
// stage the pods have to be Ready for minReadySeconds.
func zoneAfterZone(t *testing.T) {
	s := newDaemonScenario(t, labelled)
	settling := func(ds *appsv1.DaemonSet) { ds.Spec.MinReadySeconds = 2 }
	s.install(agent(settling, budget("100%", "0")))
	nodes := s.labelNodes("b", "", "a")
	s.expectIn(s.refused("annotate", agents, topologyAnnotation+"=zone=a"), topologyAnnotation, "key of a label")
	s.kubectl("", "annotate", agents, topologyAnnotation+"="+membership(s))
	s.inPlace(agents, once, func() { s.setImage(agents, "app=v2") })
	s.inStages("v2", nodes[2:], nodes[:1], nodes[1:2])
}

// inStages checks that the pods on the nodes of one stage got the image only when those on the nodes of all stages before had it and were
// Ready.
func (s *scenario) inStages(tag string, stages ...[]string) {
	s.Helper()
	has := func(pod *corev1.Pod) bool { return pod != nil && imagesOf(pod.Spec)["app"] == appImage(tag) }
	last := map[string]*corev1.Pod{} // the pods, by node
	for _, e := range s.recorder.inOrder() {
		pod, is := e.object.(*corev1.Pod)
		if !is || pulls(pod) || pod.Spec.NodeName == "" {
			continue
		}
		before, node := last[pod.Spec.NodeName], pod.Spec.NodeName
		last[node] = pod
		if has(before) || !has(pod) {
			continue
		}
		stage := slices.IndexFunc(stages, func(nodes []string) bool { return slices.Contains(nodes, node) })
		for _, earlier := range slices.Concat(stages[:max(0, stage)]...) {
			if there := last[earlier]; !has(there) || !ready(there) {
				s.Errorf("%s on %s gets image %s before the pod on %s has it and is Ready", pod.Name, node, tag, earlier)
			}
		}
	}
	if len(last) != len(slices.Concat(stages...)) {
		s.Errorf("there are pods on %d nodes, and the stages are %q", len(last), stages)
	}
}
