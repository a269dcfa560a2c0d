//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Tolerations for templates: of a taint that no node has, of unreachable nodes for another time than the default, and of the taint of a
// node.
const (
	noTaint   = "e2e.stayput.dev/none"
	tolerated = `{"key":"` + noTaint + `","operator":"Exists"}`
	impatient = `{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":30}`
	tolerant  = `{"key":"` + sickness + `","operator":"Exists"}`
)

// tolerate checks that running pods get added tolerations, and that no container restarts.
func tolerate(t *testing.T) {
	of := func(scenario func(*scenario, string)) func(*testing.T) {
		return func(t *testing.T) {
			s := newScenario(t, labelled)
			s.create(web(3))
			scenario(s, "web")
		}
	}
	together(t, map[string]func(*testing.T){"added": of(tolerationAdded)})
	nightly(t, map[string]func(*testing.T){
		"undo":    of(tolerationUndone),
		"default": of(defaultToleration),
		"default of a DaemonSet": func(t *testing.T) {
			s := newDaemonScenario(t, labelled)
			s.install(agent())
			defaultToleration(s, agents)
		},
	})
}

// tolerates gives the template these tolerations, and more of its spec.
func (s *scenario) tolerates(name, tolerations, spec string) string {
	s.Helper()
	fields := fmt.Sprintf(`"tolerations":[%s]`, tolerations)
	if spec != "" {
		fields += "," + spec
	}
	return s.patchTemplate(name, `"metadata":{}`, fields)
}

// tolerating checks how many tolerations the pods have for that key.
func (s *scenario) tolerating(name, key string, times int) {
	s.Helper()
	for _, pod := range s.pods(name) {
		of := slices.DeleteFunc(slices.Clone(pod.Spec.Tolerations), func(t corev1.Toleration) bool { return t.Key != key })
		if len(of) != times {
			s.Errorf("pod %s tolerates %s %d times, want %d: %v", pod.Name, key, len(of), times, pod.Spec.Tolerations)
		}
	}
}

func tolerationAdded(s *scenario, name string) {
	s.inPlace(name, nil, func() { s.expectIn(s.tolerates(name, tolerated, ""), "Warning:", "in place: no restart") })
	s.tolerating(name, noTaint, 1)
	s.inPlace(name, nil, func() { s.tolerates(name, tolerant+","+tolerated, "") })
	s.tolerating(name, noTaint, 1)
	s.tolerating(name, sickness, 1)
	s.tolerating(name, corev1.TaintNodeNotReady, 1)
	s.begin("refused", noUpdates)
	s.expectIn(s.refused("patch", ref(name), "-p",
		`{"spec":{"template":{"spec":{"tolerations":[{"key":"`+noTaint+`","operator":"Equals"}]}}}}`), "operator")
}

// tolerationUndone checks that pods are recreated, because a toleration cannot be removed from a pod.
func tolerationUndone(s *scenario, name string) {
	s.inPlace(name, nil, func() { s.tolerates(name, tolerated, "") })
	s.recreated(name, func() { s.expectIn(s.rollout("undo", name), "recreate: /spec/tolerations removed") })
	s.tolerating(name, noTaint, 0)
}

// defaultToleration tests the default tolerations of pods. Pods of a Deployment get them by default, and new ones would not get one that
// the template has. Pods of a DaemonSet have those of the native controller, whatever the template says.
func defaultToleration(s *scenario, name string) {
	if isDaemonSet(name) {
		s.inPlace(name, nil, func() { s.expectIn(s.tolerates(name, impatient, ""), "in place: no restart") })
	} else {
		s.recreated(name, func() {
			s.expectIn(s.tolerates(name, impatient, ""), "recreate: /spec/tolerations changed", corev1.TaintNodeNotReady)
		})
	}
	s.tolerating(name, corev1.TaintNodeNotReady, 1)
}

// nodeTolerated checks that with the toleration the DaemonSet runs on one more node, where the native controller creates a pod.
func nodeTolerated(t *testing.T) {
	long(t)
	s := newDaemonScenario(t, labelled)
	node := s.spareNode()
	t.Cleanup(func() { cure(s, node) })
	onCluster(t, "taint", "node", node, sickness+"=yes:NoSchedule")
	s.install(agent())
	s.wanted(2)
	before := s.pods(agents)
	s.begin("one more node", Rules{Created: exactly(1), Deleted: none})
	s.expectIn(s.tolerates(agents, tolerant, ""), "in place: no restart")
	s.wanted(3)
	s.completes(agents)
	s.tolerating(agents, sickness, 1)
	for uid, pod := range s.pods(agents) {
		switch was := before[uid]; {
		case was != nil:
			s.restarted(was, pod, nil)
		case pod.Spec.NodeName != node:
			t.Errorf("pod %s is new, and not on %s", pod.Name, node)
		}
	}
	s.inPlace(agents, once, func() { s.setImage(agents, "app=v2") })
}
