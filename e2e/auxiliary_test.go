//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// auxiliary checks that an auxiliary container restarts in a pod that stays in service. The judge checks that the pod is counted as updated
// only after that container has restarted.
func auxiliary(t *testing.T) {
	kinds := map[string]func(*stage, knob) string{
		"Deployment": func(s *stage, side knob) string {
			s.create(web(3, side))
			return "web"
		},
		"DaemonSet": func(s *stage, side knob) string {
			s.Cleanup(s.nativeIsCalm)
			s.install(agent(templated(side)))
			return agents
		},
	}
	scenarios := map[string]func(*testing.T){}
	for kind, install := range kinds {
		for name, scenario := range map[string]func(*stage, string){
			"alone":                sideAlone,
			"with the application": sideWithApp,
			"undo":                 sideUndone,
			"undo half-way":        sideUndoneHalfway,
			"taken off half-way":   sideTakenOff,
			"bad value":            badSides,
		} {
			side := withAuxiliarySide
			if strings.HasSuffix(name, "half-way") {
				side = withLastingSide
			}
			scenarios[kind+", "+name] = func(t *testing.T) {
				s := newStage(t, labelled)
				scenario(s, install(s, side))
			}
		}
	}
	scenarios["Deployment, label removed half-way"] = func(t *testing.T) {
		s := newStage(t, labelled)
		s.create(web(3, withLastingSide))
		sideHandedOver(s)
	}
	together(t, lengthy(scenarios, "Deployment, alone", "Deployment, with the application", "Deployment, undo",
		"DaemonSet, undo", "DaemonSet, undo half-way", "DaemonSet, taken off half-way", "DaemonSet, bad value",
		"DaemonSet, with the application", "Deployment, taken off half-way"))
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
func (s *stage) toSide(name, tag string) {
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
func (s *stage) sideRuns(name, tag string) {
	s.Helper()
	for _, pod := range s.pods(name) {
		for _, status := range pod.Status.ContainerStatuses {
			if status.Name == "side" && status.Image != appImage(tag) {
				s.Errorf("pod %s runs %s instead of %s", pod.Name, status.Image, appImage(tag))
			}
		}
	}
}

func sideAlone(s *stage, name string) {
	s.inPlace(name, onceSide, func() { s.expectIn(s.setImage(name, "side=v2"), "in place: restarts side") })
	s.sideRuns(name, "v2")
	s.neverOut(name)
}

// sideWithApp checks that pods are taken out of service as usual when the application's container restarts as well.
func sideWithApp(s *stage, name string) {
	s.inPlace(name, restarts{"app": exactly(1), "side": exactly(1)}, func() { s.setImage(name, "app=v2", "side=v2") })
	s.runs(name, "v2")
	s.sideRuns(name, "v2")
	s.allWereOut(name)
}

func sideUndone(s *stage, name string) {
	s.inPlace(name, onceSide, func() { s.setImage(name, "side=v2") })
	s.inPlace(name, onceSide, func() { s.rollout("undo", name) })
	s.sideRuns(name, "v1")
	s.neverOut(name)
}

// sideUndoneHalfway undoes the update while the old container stops, before the kubelet has started a new one. meanwhile tests the undo
// after that.
func sideUndoneHalfway(s *stage, name string) {
	s.inPlace(name, restarts{"side": {0, 2}}, func() {
		s.toSide(name, "v2")
		s.rollout("undo", name)
	})
	s.metWhen(name, sideways)
	s.sideRuns(name, "v1")
	s.neverOut(name)
}

// sideTakenOff checks that a pod in progress is finished as it was begun, and that the pods after it are drained.
func sideTakenOff(s *stage, name string) {
	s.inPlace(name, onceSide, func() {
		s.toSide(name, "v2")
		s.neverOut(name)
		s.kubectl("", "annotate", ref(name), auxiliaryList+"-")
	})
	s.sideRuns(name, "v2")
	if out := len(s.everOut(name)); out == 0 || out > len(s.pods(name))-2 {
		s.Errorf("%d pods were out of service", out)
	}
}

func badSides(s *stage, name string) {
	s.begin("refused", frozenBut("none"))
	for _, bad := range []string{"", "*", "side,", "side,,app", "side app", "Side"} {
		s.expectIn(s.refused("annotate", ref(name), auxiliaryList+"="+bad, "--overwrite"), auxiliaryList, "shipper,metrics")
	}
	s.expectIn(s.kubectl("", "annotate", ref(name), auxiliaryList+"=side, ghost", "--overwrite"), "Warning:", "no container ghost")
	s.inPlace(name, onceSide, func() { s.setImage(name, "side=v2") })
	s.neverOut(name)
}

// sideHandedOver checks that a partially patched pod is patched back. The policies permit this to Stayput also without the label of the
// namespace.
func sideHandedOver(s *stage) {
	s.begin("in place", inPlace)
	s.toSide("web", "v2")
	s.begin("native", Rules{Created: some, Deleted: some, Outage: true})
	s.label(updateLabel + "-")
	s.completes("web")
	s.sideRuns("web", "v2")
}
