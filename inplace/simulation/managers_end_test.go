package simulation

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// endManagers ends all managers for good.
func (w *world) endManagers() {
	w.die(true)
	w.abandoned, w.stayput.lease = true, time.Time{}
}

// ticks lets two ticks of each kubelet pass.
func (w *world) ticks() {
	for range 4 {
		w.now = w.now.Add(6 * time.Second)
		w.kubelet.pods.advance(len(w.pods.log))
		for _, pod := range w.kubelet.pods.list() {
			w.kubelet.run(pod.Name)
		}
	}
}

// anyOut reports whether a pod is out of service.
func (w *world) anyOut() bool { return slices.ContainsFunc(sorted(w.pods.objects), readiness.Out) }

// simulateEnd runs one seed of TestManagersEnd.
func simulateEnd(t testing.TB, seed int64, tracing bool) *world {
	w := newWorld(t, seed, tracing)
	w.pull.Parallel, w.kubelet.skew, w.mirror = int(seed%3), skewOf(seed), seed%4 == 1
	w.calm()
	w.rules.loose = true
	for range 100 + w.rng.Intn(300) {
		w.tick(3)
	}
	for range 2000 {
		if w.tick(0); seed%2 == 0 && w.anyOut() {
			break
		}
		if w.rng.Intn(100) == 0 {
			w.user("edits the template", func(d *apps.Deployment) { d.Spec.Template = w.randomEdit().Template() })
		}
		if seed%2 == 1 && w.rng.Intn(1000) == 0 {
			break
		}
	}
	w.logf("all managers end; a pod is out of service: %v", w.anyOut())
	w.endManagers()
	if w.rng.Intn(4) == 0 {
		w.mode = inplace.ModeNone
	}
	w.lull(5, 20)
	w.ticks()
	w.checkInService()
	w.finish()
	return w
}

// TestManagersEnd: all managers end for good at a random moment, every other time while a pod is out of service. The label may be removed
// as well. Within two ticks of its kubelet every pod whose containers run is Ready again, and the rollout ends natively.
func TestManagersEnd(t *testing.T) {
	runSeeds(t, func(seed int64, tracing bool) outcome {
		w := simulateEnd(t, seed, tracing)
		return outcome{w.failed, w.describe(), w.trace}
	})
}

// runNatives runs all but the leader, which is busy with other workloads.
func (w *world) runNatives() {
	for watch := range 4 {
		w.deploymentController.deliver(watch, 100)
		w.replicaSetController.deliver(watch, 100)
	}
	w.runOthers()
	w.now = w.now.Add(50 * time.Millisecond)
}

// TestNoEventIsNeededAfterTheEnd: all managers end for good at a random moment after an edit, every other time before the leader has begun.
// The native controllers go as far as they would if another event came from outside.
func TestNoEventIsNeededAfterTheEnd(t *testing.T) {
	runSeeds(t, func(seed int64, tracing bool) outcome {
		w := newWorld(t, seed, tracing)
		w.calm()
		w.rules.loose = true
		edited := appOf(w.deployment().Spec.Template)
		edited.Image = "v9"
		w.user("edits the image", func(d *apps.Deployment) { d.Spec.Template = edited.Template() })
		for range 1 + w.rng.Intn(600) {
			if seed%2 == 0 {
				w.runNatives()
			} else {
				w.tick(0)
			}
		}
		w.logf("all managers end; a pod is out of service: %v", w.anyOut())
		w.endManagers()
		for range w.rng.Intn(100) { // the native controllers may still decide on older caches
			w.tick(0)
		}
		w.ticks()
		longest := 3 * time.Minute
		if d := w.deployment(); d.MaxSurge() == 0 && hasDeadline(d) { // reconcileOldReplicaSets drops the error of a refused scaling down
			longest += time.Duration(deadline(d)) * time.Second
		}
		for end := w.now.Add(longest); w.now.Before(end) && !w.complete(); w.now = w.now.Add(10 * time.Second) {
			w.calm()
		}
		ended := w.complete()
		w.resync()
		if w.calm(); w.complete() && !ended {
			w.violated("the rollout ended only with another event")
		}
		return outcome{w.failed, w.describe(), w.trace}
	})
}

// TestDaemonManagersEnd is the same for DaemonSets.
func TestDaemonManagersEnd(t *testing.T) {
	runSeeds(t, func(seed int64, tracing bool) outcome {
		w := newDaemonWorld(t, seed, tracing)
		w.rules.loose = true
		w.calm()
		for range 100 + w.rng.Intn(300) {
			w.tick(2)
		}
		for range 2000 {
			if w.tick(0); w.anyOut() {
				break
			}
		}
		w.logf("all managers end; a pod is out of service: %v", w.anyOut())
		w.endManagers()
		if w.rng.Intn(4) == 0 {
			w.mode = inplace.ModeNone
		}
		for end := w.now.Add(10 * time.Second); w.now.Before(end) && w.failed == ""; w.now = w.now.Add(50 * time.Millisecond) {
			w.tick(0)
		}
		w.ticks()
		w.checkInService()
		w.endNatively()
		return outcome{w.failed, w.describe(), w.trace}
	})
}

// endNatively demands that the native controller ends the rollout, although no manager removes marks.
func (w *daemonWorld) endNatively() {
	w.kubelet.short = false
	w.editDaemons("ends with something that works", func(d *apps.DaemonSet) { d.Spec.Template = fixture.App{Image: "v9"}.Template() })
	w.calm()
	for _, pod := range sorted(w.pods.objects) {
		if !apps.IsTrue(pod, corev1.PodReady) || !w.isAs(pod, w.daemonSet().Spec.Template) {
			w.violated("%s is not Ready, or has %s", pod.Name, fixture.Images(pod))
		}
	}
}

// TestStepsWhereNoWebhookIsAsked: kubelets put pods back into service at their ticks. So drains begin anew, and after as long as a drain
// may take, pods are patched while they serve.
func TestStepsWhereNoWebhookIsAsked(t *testing.T) {
	s := draining(t, 2)
	before := sorted(s.pods.objects)
	s.settings.Drain, s.unasked = 15*time.Second, true
	s.edit("sets the image", fixture.App{Image: "v2"})
	begun := s.now
	for !s.moved(1)() && s.now.Sub(begun) < 5*time.Minute {
		s.wait(time.Second)
	}
	if took, most := s.now.Sub(begun), s.settings.Drain+podstate.DrainPatience; took < most || took > most+15*time.Second {
		t.Errorf("the first pod was patched after %s: %q", took, s.steps)
	}
	if out := slices.DeleteFunc(slices.Clone(s.steps), func(step string) bool { return step != "out 1" }); len(out) < 3 || len(out) > 6 {
		t.Errorf("it was taken out of service %d times: %q", len(out), s.steps)
	}
	if last := s.steps[len(s.steps)-1]; last != "patch 1" {
		t.Errorf("%q", s.steps)
	}
	s.wait(5 * time.Minute)
	s.rest()
	s.intact(before)
}

// TestPodComesBackWithoutItsLeader: the leader ends, and others answer webhooks. They keep the pod out of service for a minute more than
// its drain may take.
func TestPodComesBackWithoutItsLeader(t *testing.T) {
	s := draining(t, 2)
	s.settings.Drain = 15 * time.Second
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.until(s.anyOut)
	begun := s.now
	s.stayput.running = false
	s.user("pauses", func(d *apps.Deployment) { d.Spec.Paused = true }) // or the native controller replaced it soon
	s.wait(40 * time.Second)
	if !s.anyOut() {
		t.Error("it came back at once")
	}
	for s.anyOut() && s.now.Sub(begun) < 10*time.Minute {
		s.wait(time.Second)
	}
	if took := s.now.Sub(begun); took < 100*time.Second || took > 120*time.Second {
		t.Errorf("it came back after %s", took)
	}
}
