//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// auxiliary checks that an auxiliary container restarts in a pod that stays in service. The judge checks that the pod is counted as updated
// only after that container has restarted.
func auxiliary(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"alone, DaemonSet": sideAlone,
	})
	nightly(t, map[string]func(*testing.T){
		"label removed half-way": sideHandedOver,
		"undo half-way":          sideUndoneHalfway,
	})
}

// withAuxiliarySide adds an auxiliary container.
func withAuxiliarySide(d *appsv1.Deployment) {
	withSide(d)
	d.Annotations = map[string]string{auxiliaryList: "side"}
}

// withLastingSide adds an auxiliary container that takes long to stop. So its pod is still partially patched when the next edit comes, even
// on a busy machine.
func withLastingSide(d *appsv1.Deployment) {
	withAuxiliarySide(d)
	side := &d.Spec.Template.Spec.Containers[1]
	side.Env = append(side.Env, corev1.EnvVar{Name: "STOP_DELAY", Value: "8s"})
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(10))
}

var onceSide = restarts{"side": exactly(1)}

// toSide begins an update of the auxiliary container alone, and waits until a pod is partially patched.
func (s *scenario) toSide(name, tag string) {
	s.Helper()
	s.setImage(name, "side="+tag)
	s.wait(name+" to have a partially patched pod", of(name, sideways))
}

// sideways returns nil when one pod is done, one pod runs the new auxiliary container but is not of the update revision yet, and one pod is
// untouched.
func sideways(now workload) error {
	var done, partial, untouched int
	for _, pod := range now.pods {
		switch is := slices.ContainsFunc(pod.Spec.Containers,
			func(c corev1.Container) bool { return c.Name == "side" && c.Image == appImage("v2") }); {
		case now.updated(pod):
			done++
		case is:
			partial++
		default:
			untouched++
		}
	}
	if done == 0 || partial == 0 || untouched == 0 {
		return fmt.Errorf("%d done, %d partially patched, %d untouched", done, partial, untouched)
	}
	return nil
}

// sideRuns checks that every pod runs this version of the auxiliary container.
func (s *scenario) sideRuns(name, tag string) {
	s.Helper()
	for _, pod := range s.pods(name) {
		for _, status := range pod.Status.ContainerStatuses {
			if status.Name == "side" && status.Image != appImage(tag) {
				s.Errorf("pod %s runs %s instead of %s", pod.Name, status.Image, appImage(tag))
			}
		}
	}
}

func sideAlone(t *testing.T) {
	s := newDaemonScenario(t, labelled)
	s.install(agent(templated(withAuxiliarySide)))
	s.inPlace(agents, onceSide, func() { s.expectIn(s.setImage(agents, "side=v2"), "in place: restarts side") })
	s.sideRuns(agents, "v2")
	s.neverOut(agents)
}

// sideUndoneHalfway undoes the update while the old container stops, before the kubelet has started a new one. meanwhile tests the undo
// after that.
func sideUndoneHalfway(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, withLastingSide))
	s.inPlace("web", restarts{"side": {0, 2}}, func() {
		s.toSide("web", "v2")
		s.rollout("undo", "web")
	})
	s.metWhen("web", sideways)
	s.sideRuns("web", "v1")
	s.neverOut("web")
}

// sideHandedOver checks that a partially patched pod is patched back. The policies permit this to Stayput also without the label of the
// namespace.
func sideHandedOver(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, withLastingSide))
	s.begin("in place", inPlace)
	s.toSide("web", "v2")
	s.begin("native", Rules{Created: some, Deleted: some, Outage: true})
	s.label(updateLabel + "-")
	s.completes("web")
	s.sideRuns("web", "v2")
}
