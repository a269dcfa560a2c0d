package simulation

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
)

func newSized(t *testing.T, replicas int32) *scene {
	return newScene(t, replicas, func(d *apps.Deployment) { d.Spec.Template = app{image: "v1", cpu: "100m"}.template() }, false)
}

func (s *scene) edits(a app) {
	s.user("edits", func(d *apps.Deployment) { d.Spec.Template = a.template() })
}

func TestStepsOfResources(t *testing.T) {
	s := newSized(t, 2)
	s.edits(app{image: "v1", cpu: "200m"})
	s.rest()
	s.expect("A marks", "B marks", "patch 1", "resize 1", "A 2 → 1", "move 1", "B 0 → 1",
		"patch 2", "resize 2", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
	s.checkEnd()
}

func TestStepsOfResourcesAndAnImage(t *testing.T) {
	s := newSized(t, 1)
	s.edits(app{image: "v2", cpu: "200m"})
	s.rest()
	s.expect("A marks", "B marks", "patch 1", "resize 1", "close 1", "A 1 → 0", "move 1", "B 0 → 1", "A marks", "B marks", "open 1")
	s.checkEnd()
}

func TestUndoOfResourcesHalfway(t *testing.T) {
	s := newSized(t, 2)
	s.kubelet.short = true
	s.edits(app{image: "v1", cpu: "200m"})
	s.rest()
	s.steps, s.times = nil, nil
	s.edits(app{image: "v1", cpu: "100m"})
	s.rest()
	s.expect("resize 1", "patch 1", "A marks", "B marks")
	s.checkEnd()
}

func TestUndoOfResources(t *testing.T) {
	s := newSized(t, 1)
	s.edits(app{image: "v1", cpu: "200m"})
	s.rest()
	s.edits(app{image: "v1", cpu: "100m"})
	s.rest()
	s.checkEnd()
	if sizes(s.rollout().Pods[0]) != sizes(&corev1.Pod{Spec: app{image: "v1", cpu: "100m"}.template().Typed().Spec}) {
		t.Errorf("it has %s", sizes(s.rollout().Pods[0]))
	}
}

// Half-way to one size, the user wants another, and then an image with the size of the beginning.
func TestFurtherEditsOfResources(t *testing.T) {
	for _, last := range []app{{image: "v1", cpu: "300m"}, {image: "v2", cpu: "100m"}, {image: "v2", cpu: "200m"}} {
		s := newSized(t, 3)
		s.kubelet.short = true
		s.edits(app{image: "v1", cpu: "200m"})
		s.rest()
		s.edits(last)
		s.rest()
		s.kubelet.short = false
		s.rest()
		s.checkEnd()
		if s.failed != "" {
			t.Errorf("%+v: %s %q %s", last, s.failed, s.steps, s.describe())
		}
	}
}

// While nodes have no room one pod waits, and the others are not touched. When there is room it goes on by itself.
func TestDeferredResources(t *testing.T) {
	s := newSized(t, 3)
	s.kubelet.short = true
	s.edits(app{image: "v1", cpu: "200m"})
	s.rest()
	s.expect("A marks", "B marks", "patch 1", "resize 1")
	s.kubelet.short = false
	s.rest()
	s.checkEnd()
	if len(s.rollout().Pods) != 3 || s.made != 3 {
		t.Errorf("%d pods were created", s.made)
	}
}

// It waits no longer than the rollout may: then the pod is what its label says again, and others are created.
func TestDeferredForTooLong(t *testing.T) {
	s := newSized(t, 2)
	s.kubelet.short = true
	s.edits(app{image: "v1", cpu: "200m"})
	s.rest()
	s.expect("A marks", "B marks", "patch 1", "resize 1")
	s.pass(500 * time.Second)
	s.expect()
	s.pass(150 * time.Second)
	s.rest()
	if s.made != 4 || !revisions.Released(s.rollout().Target()) && s.rollout().Verdict().Held {
		t.Errorf("%d pods were created: %q", s.made, s.steps)
	}
}

// What a node will never have is given back, and the pod that showed it gets back what it had.
func TestInfeasibleResources(t *testing.T) {
	s := newSized(t, 2)
	s.edits(app{image: "v1", cpu: "9"})
	s.rest()
	s.expect("A marks", "B marks", "patch 1", "resize 1", "resize 1", "A marks", "B marks", "patch 1", "patch 1", "B marks")
	if s.made != 4 {
		t.Errorf("%d pods were created", s.made)
	}
}

func TestPausedResources(t *testing.T) {
	s := newSized(t, 2)
	s.kubelet.short = true
	s.edits(app{image: "v1", cpu: "200m"})
	s.rest()
	s.user("pauses", func(d *apps.Deployment) { d.Spec.Paused = true })
	s.kubelet.short = false
	s.steps = nil
	s.rest()
	s.expect("A 2 → 1", "move 1", "B 0 → 1")
	s.user("resumes", func(d *apps.Deployment) { d.Spec.Paused = false })
	s.rest()
	s.checkEnd()
}

// We may die after each of the writes, and whoever comes next goes on from there.
func TestResizeByAnother(t *testing.T) {
	for writes := range 4 {
		s := newSized(t, 1)
		s.edits(app{image: "v1", cpu: "200m"})
		s.until(func() bool { return len(s.steps) >= 2+writes })
		s.stayput.running = false
		s.rest()
		s.stayput.running = true
		s.rest()
		s.checkEnd()
		if s.failed != "" || s.made != 1 {
			t.Errorf("after %d writes: %s, %d pods were created", writes, s.failed, s.made)
		}
	}
}

// A pod that somebody else has resized is left alone, unless templates change what it has.
func TestResizedBySomebodyElse(t *testing.T) {
	s := newSized(t, 1)
	pod := s.rollout().Pods[0]
	s.foreign = true
	if _, err := alter(s.world, s.pods, pod.Name, "", func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("150m")}
		pod.Generation++
	}); err != nil {
		t.Fatal(err)
	}
	s.edits(app{image: "v2", cpu: "100m"})
	s.until(func() bool { return s.rollout().Pods[0].Spec.Containers[0].Image == "v2" })
	if cpu := s.rollout().Pods[0].Spec.Containers[0].Resources.Requests.Cpu().String(); cpu != "150m" {
		t.Errorf("it has %s", cpu)
	}
}

// A pod that goes back has not arrived until its kubelet says so, and its mark stays until then.
func TestUndoOfResourcesTakesTime(t *testing.T) {
	s := newSized(t, 2)
	s.edits(app{image: "v1", cpu: "200m"})
	s.until(func() bool {
		return slices.ContainsFunc(s.rollout().Pods, func(pod *corev1.Pod) bool {
			return len(readiness.MoveOf(pod).Resize) > 0 && readiness.MoveOf(pod).Resized(pod) && pod.Generation > 1
		})
	})
	s.kubelet.short = true
	s.steps, s.times = nil, nil
	s.edits(app{image: "v1", cpu: "100m"})
	s.rest()
	s.expect("resize 1", "A 1 → 2")
	s.kubelet.short = false
	s.rest()
	s.expect("patch 1", "A marks", "B marks")
	s.checkEnd()
}

// A pod that is out of service for a new image is resized first if that is wanted meanwhile.
func TestResourcesOfAPodOutOfService(t *testing.T) {
	s := newSized(t, 1)
	s.edits(app{image: "v2", cpu: "100m"})
	s.until(func() bool { return slices.Contains(s.steps, "close 1") })
	s.steps, s.times = nil, nil
	s.edits(app{image: "v3", cpu: "200m"})
	s.rest()
	s.expect("C marks", "patch 1", "resize 1", "A 1 → 0", "move 1", "C 0 → 1", "A marks", "B marks", "C marks", "open 1")
	s.checkEnd()
}

// Who asks for a restart along with a size gets both: a pod that was resized has not been restarted yet.
func TestResourcesAndARestart(t *testing.T) {
	for _, ungated := range []bool{false, true} {
		s := newScene(t, 1, func(d *apps.Deployment) { d.Spec.Template = app{image: "v1", cpu: "100m"}.template() }, ungated)
		made := s.kubelet.ids
		s.edits(app{image: "v1", cpu: "200m", restarted: "1"})
		s.killed()
		if got := s.imageNames(); got != another || s.kubelet.ids != made+1 {
			t.Errorf("ungated %v: the pod has %s, and %d containers were started: %q", ungated, got, s.kubelet.ids-made, s.steps)
		}
		s.checkEnd()
	}
}

// A pod that was restarted before its move, and gets another size and restart meanwhile, restarts again.
func TestFurtherRestartWithResources(t *testing.T) {
	s := newScene(t, 1, func(d *apps.Deployment) { d.Spec.Template = app{image: "v1", cpu: "100m"}.template() }, true)
	made := s.kubelet.ids
	s.edits(app{image: "v1", cpu: "100m", restarted: "1"})
	s.until(s.moved(1))
	s.rest()
	if s.kubelet.ids != made+1 {
		t.Fatalf("%d containers were started: %q", s.kubelet.ids-made, s.steps)
	}
	s.edits(app{image: "v1", cpu: "200m", restarted: "2"})
	s.killed()
	s.killed()
	if s.kubelet.ids < made+2 {
		t.Errorf("%d containers were started: %q", s.kubelet.ids-made, s.steps)
	}
	s.checkEnd()
}

// killed lets all containers be killed that may have to be.
func (s *scene) killed() {
	s.rest()
	s.now = s.now.Add(readiness.GracePeriod(s.rollout().Pods[0]) + readiness.KillMargin)
	s.rest()
}
