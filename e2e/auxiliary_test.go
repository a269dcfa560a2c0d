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

// auxiliary: a container that nobody waits for restarts without closing its pod's gate. The judge demands that the pod is counted as updated only
// when it has.
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
		"DaemonSet, undo", "DaemonSet, undo half-way", "DaemonSet, taken off half-way", "DaemonSet, bad value", "DaemonSet, with the application"))
}

// withAuxiliarySide adds a container that nobody waits for.
func withAuxiliarySide(d *appsv1.Deployment) {
	withSide(d)
	d.Annotations = map[string]string{auxiliaryList: "side"}
}

// withLastingSide adds one that takes so long to stop that its pod is half-way when an edit comes, however busy the machine is.
func withLastingSide(d *appsv1.Deployment) {
	withAuxiliarySide(d)
	side := &d.Spec.Template.Spec.Containers[1]
	side.Env = append(side.Env, corev1.EnvVar{Name: "STOP_DELAY", Value: "8s"})
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(10))
}

var onceSide = restarts{"side": exactly(1)}

// toSide begins an update of the side alone, and waits until it is half-way.
func (s *stage) toSide(name, tag string) {
	s.Helper()
	s.setImage(name, "side="+tag)
	s.wait(name+" to be half-way", of(name, sideways))
}

// sideways: a pod is done, one has a new side and not yet its new identity, and one is untouched.
func sideways(now workload) error {
	var done, partial, untouched int
	for _, pod := range now.pods {
		switch is := slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "side" && c.Image == appImage("v2") }); {
		case now.updated(pod):
			done++
		case is:
			partial++
		default:
			untouched++
		}
	}
	if done == 0 || partial == 0 || untouched == 0 {
		return fmt.Errorf("%d done, %d half-way, %d untouched", done, partial, untouched)
	}
	return nil
}

// sideRuns demands that every pod runs this version of it.
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

// closures are the pods whose gate was ever closed.
func (s *stage) closures() map[string]bool {
	closed := map[string]bool{}
	for _, e := range s.recorder.inOrder() {
		pod, is := e.object.(*corev1.Pod)
		if gate := is && conditionOf(pod, servingGate) != nil; gate && !gateOpen(pod) {
			closed[pod.Name] = true
		}
	}
	return closed
}

func sideAlone(s *stage, name string) {
	s.inPlace(name, onceSide, func() { s.expectIn(s.setImage(name, "side=v2"), "in place: restarts side") })
	s.sideRuns(name, "v2")
	s.neverClosed()
}

// sideWithApp: then all goes as ever.
func sideWithApp(s *stage, name string) {
	s.inPlace(name, restarts{"app": exactly(1), "side": exactly(1)}, func() { s.setImage(name, "app=v2", "side=v2") })
	s.runs(name, "v2")
	s.sideRuns(name, "v2")
	if closed := s.closures(); len(closed) != len(s.pods(name)) {
		s.Errorf("gates were closed of %v only", closed)
	}
}

func sideUndone(s *stage, name string) {
	s.inPlace(name, onceSide, func() { s.setImage(name, "side=v2") })
	s.inPlace(name, onceSide, func() { s.rollout("undo", name) })
	s.sideRuns(name, "v1")
	s.neverClosed()
}

// sideUndoneHalfway: while it stops, before its kubelet has started another one. In meanwhile it has been.
func sideUndoneHalfway(s *stage, name string) {
	s.inPlace(name, restarts{"side": {0, 2}}, func() {
		s.toSide(name, "v2")
		s.rollout("undo", name)
	})
	s.metWhen(name, sideways)
	s.sideRuns(name, "v1")
	s.neverClosed()
}

// sideTakenOff: pods under way are finished as they were begun, those after them are drained.
func sideTakenOff(s *stage, name string) {
	s.inPlace(name, onceSide, func() {
		s.toSide(name, "v2")
		s.neverClosed()
		s.kubectl("", "annotate", ref(name), auxiliaryList+"-")
	})
	s.sideRuns(name, "v2")
	if closed := len(s.closures()); closed == 0 || closed > len(s.pods(name))-2 {
		s.Errorf("%d gates were closed", closed)
	}
}

func badSides(s *stage, name string) {
	s.begin("refused", frozenBut("nobody"))
	for _, bad := range []string{"", "*", "side,", "side,,app", "side app", "Side"} {
		s.expectIn(s.refused("annotate", ref(name), auxiliaryList+"="+bad, "--overwrite"), auxiliaryList, "shipper,metrics")
	}
	s.expectIn(s.kubectl("", "annotate", ref(name), auxiliaryList+"=side, ghost", "--overwrite"), "Warning:", "no container ghost")
	s.inPlace(name, onceSide, func() { s.setImage(name, "side=v2") })
	s.neverClosed()
}

// sideHandedOver: a pod that is half-way goes back, which the policies let Stayput do without the namespace's label, too.
func sideHandedOver(s *stage) {
	s.begin("in place", inPlace)
	s.toSide("web", "v2")
	s.begin("native", Rules{Created: some, Deleted: some, Outage: true})
	s.label(updateLabel + "-")
	s.completes("web")
	s.sideRuns("web", "v2")
}
