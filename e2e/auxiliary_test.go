//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// auxiliary: a container that nobody waits for restarts without closing its pod's gate. The judge demands that the pod is counted as updated only
// when it has.
func auxiliary(t *testing.T) {
	kinds := map[string]func(*stage) string{
		"Deployment": func(s *stage) string {
			s.create(web(4, withLastingSide))
			return "web"
		},
		"DaemonSet": func(s *stage) string {
			s.Cleanup(s.nativeIsCalm)
			s.install(agent(func(ds *appsv1.DaemonSet) {
				templated(withLastingSide)(ds)
				ds.Annotations = map[string]string{auxiliaryList: "side"}
			}))
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
			scenarios[kind+", "+name] = func(t *testing.T) {
				s := newStage(t, labelled)
				scenario(s, install(s))
			}
		}
	}
	for name, scenario := range map[string]func(*stage){"pause half-way": sidePaused, "scaled half-way": sideScaled, "label removed half-way": sideHandedOver} {
		scenarios["Deployment, "+name] = func(t *testing.T) {
			s := newStage(t, labelled)
			s.create(web(4, withLastingSide), web(1, named("clock")))
			scenario(s)
		}
	}
	together(t, lengthy(scenarios, "DaemonSet, undo", "DaemonSet, bad value", "DaemonSet, with the application", "Deployment, undo",
		"Deployment, scaled half-way"))
}

// withLastingSide adds a container that nobody waits for and that takes seconds to stop: for so long its pod is half-way.
func withLastingSide(d *appsv1.Deployment) {
	withSide(d)
	side := &d.Spec.Template.Spec.Containers[1]
	side.Env = append(side.Env, corev1.EnvVar{Name: "STOP_DELAY", Value: "5s"})
	d.Annotations = map[string]string{auxiliaryList: "side"}
}

var onceSide = restarts{"side": exactly(1)}

// sideways: a pod is done, in one the side restarts, and one is untouched.
var sideways = moment{"partly done, partly restarting, partly untouched", func(t tally) bool {
	return t.done > 0 && t.moving > 0 && t.untouched > 0
}}

// toSide begins an update of the side alone, and waits until it is half-way.
func (s *stage) toSide(name, tag string) {
	s.Helper()
	s.setImage(name, "side="+tag)
	s.reaches(name, sideways)
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

func sideUndoneHalfway(s *stage, name string) {
	s.inPlace(name, restarts{"side": {0, 2}}, func() {
		s.toSide(name, "v2")
		s.rollout("undo", name)
	})
	s.met(name, sideways)
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

func sidePaused(s *stage) {
	before := s.pods("web")
	s.begin("half-way", inPlace)
	s.toSide("web", "v2")
	s.rollout("pause", "web")
	s.wait("no pod to be half-way", on("web", func(w world, d *appsv1.Deployment) error {
		for _, pod := range w.podsOf(d) {
			if set := w.ownerOf(pod); set == nil || !ready(pod) || !hasImages(pod, set.Spec.Template.Spec) {
				return fmt.Errorf("%s is (%s)", pod.Name, describePod(pod))
			}
		}
		return nil
	}))
	s.begin("paused", frozenBut("clock"))
	s.tick("v2")
	s.begin("resumed", inPlace)
	s.rollout("resume", "web")
	s.completes("web")
	s.met("web", partly)
	s.kept("web", before, onceSide)
}

func sideScaled(s *stage) {
	before := s.pods("web")
	s.begin("scaling", Rules{Created: exactly(1), Deleted: none})
	s.toSide("web", "v2")
	s.kubectl("", "scale", "deployment", "web", "--replicas=5")
	s.completes("web")
	s.survived("web", before)
	s.sideRuns("web", "v2")
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
