//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// undo tests undo and further edits, from every state of an update.
func undo(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"half-way":            undoHalfway,
		"of a crashing image": undoCrashing,
	})
	nightly(t, map[string]func(*testing.T){
		"rollover half-way": rollover,
	})
}

// undoHalfway checks that an undo reverts the pods that are done or in progress, and leaves the others untouched.
func undoHalfway(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, slow))
	s.inPlace("web", restarts{"app": {0, 2}}, func() {
		s.setImage("web", "app=v2")
		s.reaches("web", threeway)
		s.rollout("undo", "web")
	})
	s.met("web", threeway)
	s.runs("web", "v1")
	s.someNeverRestarted("web")
}

// someNeverRestarted checks that an undo in the middle of an update has not restarted untouched pods.
func (s *scenario) someNeverRestarted(name string) {
	s.Helper()
	for _, pod := range s.pods(name) {
		restarted := restartsOf(pod)
		maps.DeleteFunc(restarted, func(_ string, times int32) bool { return times == 0 })
		if len(restarted) == 0 {
			return
		}
	}
	s.Errorf("every pod of %s restarted, also those that were untouched", name)
}

// undoCrashing checks that a bad image that no node has tried to pull before makes as many pods unavailable as maxUnavailable allows, and
// that the undo repairs them.
func undoCrashing(t *testing.T) {
	s := newScenario(t, unpulled)
	s.create(web(3))
	s.inPlace("web", restarts{"app": anyNumber}, func() {
		s.setImage("web", "app=crash")
		s.fails("web", "CrashLoopBackOff")
		s.rollout("undo", "web")
	})
	s.runs("web", "v1")
	s.someNeverRestarted("web")
}

// fails waits until a pod of the update revision waits for this reason.
func (s *scenario) fails(name, reason string) {
	s.Helper()
	s.wait("a pod that waits with "+reason, of(name, func(now workload) error {
		for _, pod := range now.pods {
			if waitsWith(pod, reason) {
				return nil
			}
		}
		return errors.New(now.podCounts().String())
	}))
}

func waitsWith(pod *corev1.Pod, reason string) bool {
	for _, status := range statusesOf(pod) {
		if status.State.Waiting != nil && status.State.Waiting.Reason == reason {
			return true
		}
	}
	return false
}

func rollover(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, slow))
	s.inPlace("web", restarts{"app": {1, 2}}, func() {
		s.setImage("web", "app=v2")
		s.reaches("web", threeway)
		s.setImage("web", "app=v3")
	})
	s.met("web", threeway)
	s.runs("web", "v3")
	s.history("web", "1", "2", "3")
}

// runs checks that every pod of a complete workload runs this version, according to the kubelet.
func (s *scenario) runs(name, tag string) {
	s.Helper()
	s.runsIn("app", name, tag)
}

// runsIn checks the same of one container.
func (s *scenario) runsIn(container, name, tag string) {
	s.Helper()
	for _, pod := range s.pods(name) {
		for _, status := range statusesOf(pod) {
			if status.Name == container && status.Image != appImage(tag) {
				s.Errorf("pod %s runs %s instead of %s", pod.Name, status.Image, appImage(tag))
			}
		}
	}
}

// pause checks that a paused Deployment begins with no further pod, whatever else happens.
func pause(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"pause half-way": pauseHalfway,
	})
}

// tick updates another Deployment from beginning to end, which gives Stayput the time to make a wrong step.
func (s *scenario) tick(tag string) {
	s.Helper()
	s.setImage("clock", "app="+tag)
	s.completes("clock")
}

func pauseHalfway(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, slow), web(1, named("clock")))
	before := s.pods("web")
	s.begin("half-way", inPlace)
	s.setImage("web", "app=v2")
	s.reaches("web", threeway)
	s.rollout("pause", "web")
	s.rests("web")
	s.begin("paused", updatesOnly("clock"))
	s.tick("v2")
	s.begin("resumed", inPlace)
	s.rollout("resume", "web")
	s.completes("web")
	s.met("web", partly)
	s.kept("web", before, once)
}

// rests waits until no pod of a paused Deployment is in progress any more: each is Ready, with the images of its revision.
func (s *scenario) rests(name string) {
	s.Helper()
	s.wait("the pods in progress to be finished", on(name, func(w world, d *appsv1.Deployment) error {
		if d.Status.ObservedGeneration < d.Generation {
			return fmt.Errorf("generation %d of %d is observed", d.Status.ObservedGeneration, d.Generation)
		}
		for _, pod := range w.podsOf(d) {
			if err := settled(pod, w.ownerOf(pod)); err != nil {
				return fmt.Errorf("pod %s %w", pod.Name, err)
			}
		}
		return nil
	}))
}
