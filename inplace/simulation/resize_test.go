package simulation

import (
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

func newSized(t *testing.T, replicas int32) *lockstep {
	return newLockstep(t, replicas, func(d *apps.Deployment) { d.Spec.Template = fixture.App{Image: "v1", CPU: "100m"}.Template() })
}

func (s *lockstep) edits(a fixture.App) {
	s.user("edits", func(d *apps.Deployment) { d.Spec.Template = a.Template() })
}

func TestStepsOfResources(t *testing.T) {
	s := newSized(t, 2)
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.rest()
	s.expect("A marks", "B marks", "patch 1", "resize 1", "A 2 → 1", "move 1", "B 0 → 1",
		"patch 2", "resize 2", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
	s.checkEnd()
}

func TestStepsOfResourcesAndAnImage(t *testing.T) {
	s := newSized(t, 1)
	s.edits(fixture.App{Image: "v2", CPU: "200m"})
	s.rest()
	s.expect("A marks", "B marks", "patch 1", "resize 1", "out 1", "A 1 → 0", "move 1", "B 0 → 1", "A marks", "B marks")
	s.checkEnd()
}

func TestUndoOfResourcesMidUpdate(t *testing.T) {
	s := newSized(t, 2)
	s.kubelet.short = true
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.rest()
	s.steps, s.times = nil, nil
	s.edits(fixture.App{Image: "v1", CPU: "100m"})
	s.rest()
	s.expect("resize 1", "resize 2", "patch 1", "patch 2", "A marks", "B marks")
	s.checkEnd()
}

func TestUndoOfResources(t *testing.T) {
	s := newSized(t, 1)
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.rest()
	s.edits(fixture.App{Image: "v1", CPU: "100m"})
	s.rest()
	s.checkEnd()
	if fixture.Sizes(s.rollout().Seen.Pods[0]) != fixture.Sizes(&corev1.Pod{Spec: fixture.App{Image: "v1",
		CPU: "100m"}.Template().Typed().Spec}) {
		t.Errorf("it has %s", fixture.Sizes(s.rollout().Seen.Pods[0]))
	}
}

// TestFurtherEditsOfResources: pods are partially patched to one size. Then the user wants another size, or an image with the first size.
func TestFurtherEditsOfResources(t *testing.T) {
	for _, last := range []fixture.App{{Image: "v1", CPU: "300m"}, {Image: "v2", CPU: "100m"}, {Image: "v2", CPU: "200m"}} {
		s := newSized(t, 3)
		s.kubelet.short = true
		s.edits(fixture.App{Image: "v1", CPU: "200m"})
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

// TestDeferredResources: while nodes have no capacity, pods wait and go on serving. They do not keep other pods from their turns. When
// there is capacity, the update goes on by itself.
func TestDeferredResources(t *testing.T) {
	s := newSized(t, 3)
	s.kubelet.short = true
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.rest()
	s.expect("A marks", "B marks", "patch 1", "resize 1", "patch 2", "resize 2", "patch 3", "resize 3")
	s.kubelet.short = false
	s.rest()
	s.checkEnd()
	if len(s.rollout().Seen.Pods) != 3 || s.made != 3 {
		t.Errorf("%d pods were created", s.made)
	}
}

// TestDeferredForTooLong: the update waits until the progress deadline. Then the pod gets back the size of its revision, and new pods are
// created.
func TestDeferredForTooLong(t *testing.T) {
	s := newSized(t, 2)
	s.kubelet.short = true
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.rest()
	s.expect("A marks", "B marks", "patch 1", "resize 1", "patch 2", "resize 2")
	s.pass(500 * time.Second)
	s.expect()
	s.pass(150 * time.Second)
	s.rest()
	if s.made != 4 || s.rollout().Decision().Held {
		t.Errorf("%d pods were created: %q", s.made, s.steps)
	}
}

// TestInfeasibleResources: an update to an infeasible size falls back. The pods get back the size they had.
func TestInfeasibleResources(t *testing.T) {
	s := newSized(t, 2)
	s.edits(fixture.App{Image: "v1", CPU: "9"})
	s.rest()
	s.expect("A marks", "B marks", "patch 1", "resize 1", "patch 2", "resize 2", "resize 1", "resize 2", "A marks", "B marks", "patch 1",
		"patch 2", "A marks", "patch 1")
	if s.made != 4 {
		t.Errorf("%d pods were created", s.made)
	}
}

// TestStepsOfResourcesThatRestart: if resizePolicy asks for a restart with other CPU, pods are resized as with another image: drained, as
// many at a time, and with one restart each.
func TestStepsOfResourcesThatRestart(t *testing.T) {
	s := newRenewing(t, 2)
	made := s.kubelet.ids
	s.edits(fixture.App{Image: "v1", CPU: "200m", Renews: true})
	s.rest()
	s.expect("A marks", "B marks", "out 1", "patch 1", "resize 1", "back 1", "A 2 → 1", "move 1", "B 0 → 1",
		"out 2", "patch 2", "resize 2", "back 2", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
	if s.kubelet.ids != made+2 {
		t.Errorf("%d containers were started", s.kubelet.ids-made)
	}
	s.checkEnd()
}

func newRenewing(t *testing.T, replicas int32) *lockstep {
	return newLockstep(t, replicas, func(d *apps.Deployment) {
		d.Spec.Template = fixture.App{Image: "v1", CPU: "100m", Renews: true}.Template()
	})
}

// TestUndoOfResourcesThatRestart: an undo at any step, and after the last one, takes the pod back with a restart.
func TestUndoOfResourcesThatRestart(t *testing.T) {
	for _, until := range []string{"out 1", "patch 1", "resize 1", "move 1"} {
		s := newRenewing(t, 2)
		s.edits(fixture.App{Image: "v1", CPU: "200m", Renews: true})
		s.until(func() bool { return slices.Contains(s.steps, until) })
		s.edits(fixture.App{Image: "v1", CPU: "100m", Renews: true})
		s.rest()
		s.checkEnd()
		if got := s.cpus(); got != "100m 100m" || s.failed != "" || s.made != 2 {
			t.Errorf("after %s: the pods have %s: %q %s", until, got, s.steps, s.failed)
		}
	}
}

// TestDeferredResourcesThatRestart: a pod goes on serving while its node has no capacity, and no other pod begins, because each restarts as
// soon as there is capacity.
func TestDeferredResourcesThatRestart(t *testing.T) {
	s := newRenewing(t, 4)
	s.kubelet.short = true
	s.edits(fixture.App{Image: "v1", CPU: "200m", Renews: true})
	s.rest()
	s.expect("A marks", "B marks", "out 1", "patch 1", "resize 1", "back 1")
	s.kubelet.short = false
	s.until(func() bool {
		if down := s.down(); down > 1 {
			t.Fatalf("%d pods are down at once", down)
		}
		return false
	})
	s.checkEnd()
}

// down returns how many pods have a container that does not run, stops, or is not ready.
func (s *lockstep) down() int {
	down := 0
	for _, containers := range s.kubelet.state {
		for _, c := range containers {
			if !c.dying.IsZero() || !c.running || !c.ready {
				down++
				break
			}
		}
	}
	return down
}

// TestResourcesThatRestartByAnother: a pod that is out of service for a restart stays so between the first patch and the resize, even if
// the leader goes just then. The next leader resizes.
func TestResourcesThatRestartByAnother(t *testing.T) {
	s := newRenewing(t, 2)
	s.edits(fixture.App{Image: "v1", CPU: "200m", Renews: true})
	s.until(func() bool { return slices.Contains(s.steps, "patch 1") })
	if pod := s.rollout().Seen.Pods[0]; mayGoBack(pod, s.now) {
		t.Error("it may go back into service")
	}
	s.user("pauses", func(d *apps.Deployment) { d.Spec.Paused = true })
	s.rest()
	if !slices.Contains(s.steps, "resize 1") {
		t.Errorf("steps are %q", s.steps)
	}
	s.user("resumes", func(d *apps.Deployment) { d.Spec.Paused = false })
	s.rest()
	s.checkEnd()
}

func mayGoBack(pod *corev1.Pod, now time.Time) bool {
	may, _ := readiness.MoveOf(pod).MayGoBack(nil, pod, now)
	return may
}

// TestUndoOfResourcesAndAnImageWithoutRoom: the node has no capacity to undo the resize. The undo of the image comes when the deadline has
// passed.
func TestUndoOfResourcesAndAnImageWithoutRoom(t *testing.T) {
	s := lastEndpoint(t, func(d *apps.Deployment) { d.Spec.Template = fixture.App{Image: "v1", CPU: "200m"}.Template() })
	s.edits(fixture.App{Image: "bad", CPU: "100m"})
	s.rest()
	s.kubelet.short = true
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.rest()
	s.pass(11 * time.Minute)
	s.rest()
	if image := s.rollout().Seen.Pods[0].Spec.Containers[0].Image; image != "v1" {
		t.Errorf("the pod has %s: %q", image, s.steps)
	}
}

// TestResourcesThatRestartAndAnotherImage: a new image restarts its own container once, if another container is resized.
func TestResourcesThatRestartAndAnotherImage(t *testing.T) {
	s := newLockstep(t, 1, func(d *apps.Deployment) {
		d.Spec.Template = fixture.App{Image: "v1", Sidecar: "s1", CPU: "100m", Renews: true}.Template()
	})
	made := s.kubelet.ids
	s.edits(fixture.App{Image: "v1", Sidecar: "s2", CPU: "200m", Renews: true})
	s.rest()
	s.expect("A marks", "B marks", "out 1", "patch 1", "resize 1", "A 1 → 0", "move 1", "B 0 → 1", "A marks", "B marks")
	if s.kubelet.ids != made+2 {
		t.Errorf("%d containers were started", s.kubelet.ids-made)
	}
	s.checkEnd()
}

// TestInfeasibleOnOneNode: only the pod whose node has too little CPU is replaced, after all others were resized.
func TestInfeasibleOnOneNode(t *testing.T) {
	s := newSized(t, 4)
	s.kubelet.cramped = map[string]string{s.rollout().Seen.Pods[0].Name: "200m"}
	before := s.uids()
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.rest()
	after := s.uids()
	maps.DeleteFunc(after, func(uid types.UID, _ bool) bool { return before[uid] })
	if s.made != 5 || len(after) != 1 || len(s.uids()) != 4 || s.failed != "" {
		t.Errorf("%d pods were created, and %d are new: %q %s", s.made, len(after), s.steps, s.failed)
	}
}

func (s *lockstep) uids() map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, pod := range s.rollout().Seen.Pods {
		uids[pod.UID] = true
	}
	return uids
}

func TestPausedResources(t *testing.T) {
	s := newSized(t, 2)
	s.kubelet.short = true
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.until(func() bool { return slices.Contains(s.steps, "resize 1") })
	s.user("pauses", func(d *apps.Deployment) { d.Spec.Paused = true })
	s.kubelet.short = false
	s.steps = nil
	s.rest()
	s.expect("A 2 → 1", "move 1", "B 0 → 1")
	s.user("resumes", func(d *apps.Deployment) { d.Spec.Paused = false })
	s.rest()
	s.checkEnd()
}

// TestResizeByAnother: the leader may die after each of the writes, and the next leader goes on from there.
func TestResizeByAnother(t *testing.T) {
	for writes := range 4 {
		s := newSized(t, 1)
		s.edits(fixture.App{Image: "v1", CPU: "200m"})
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

// TestResizedByAnother: a pod that another client has resized is left alone, unless templates change its resources.
func TestResizedByAnother(t *testing.T) {
	s := newSized(t, 1)
	pod := s.rollout().Seen.Pods[0]
	s.foreign = true
	if _, err := alter(s.world, s.pods, pod.Name, "", func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("150m")}
		pod.Generation++
	}); err != nil {
		t.Fatal(err)
	}
	s.edits(fixture.App{Image: "v2", CPU: "100m"})
	s.until(func() bool { return s.rollout().Seen.Pods[0].Spec.Containers[0].Image == "v2" })
	if cpu := s.rollout().Seen.Pods[0].Spec.Containers[0].Resources.Requests.Cpu().String(); cpu != "150m" {
		t.Errorf("it has %s", cpu)
	}
}

// TestUndoOfResourcesTakesTime: a resize back is not applied until the kubelet reports it, and the mark stays until then.
func TestUndoOfResourcesTakesTime(t *testing.T) {
	s := newSized(t, 2)
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.until(func() bool {
		return slices.ContainsFunc(s.rollout().Seen.Pods, func(pod *corev1.Pod) bool {
			return len(readiness.MoveOf(pod).Resize) > 0 && readiness.MoveOf(pod).Resized(pod) && pod.Generation > 1
		})
	})
	s.kubelet.short = true
	s.steps, s.times = nil, nil
	s.edits(fixture.App{Image: "v1", CPU: "100m"})
	s.rest()
	s.expect("resize 1", "A 1 → 2")
	s.kubelet.short = false
	s.rest()
	s.expect("patch 1", "A marks", "B marks")
	s.checkEnd()
}

// TestResourcesOfAPodOutOfService: a pod is out of service for a new image, and then an edit asks for a resize, too. The pod is resized
// first.
func TestResourcesOfAPodOutOfService(t *testing.T) {
	s := newSized(t, 1)
	s.edits(fixture.App{Image: "v2", CPU: "100m"})
	s.until(func() bool { return slices.Contains(s.steps, "out 1") })
	s.steps, s.times = nil, nil
	s.edits(fixture.App{Image: "v3", CPU: "200m"})
	s.rest()
	s.expect("C marks", "patch 1", "resize 1", "A 1 → 0", "move 1", "C 0 → 1", "A marks", "B marks", "C marks")
	s.checkEnd()
}

// TestResourcesAndARestart: an edit of resources and a restart does both. A pod that was resized has not been restarted yet.
func TestResourcesAndARestart(t *testing.T) {
	for _, last := range []bool{false, true} {
		s := newLockstep(t, 1, func(d *apps.Deployment) { d.Spec.Template = fixture.App{Image: "v1", CPU: "100m"}.Template() })
		if last {
			s.served()
		}
		made := s.kubelet.ids
		s.edits(fixture.App{Image: "v1", CPU: "200m", Restarted: "1"})
		s.killed()
		if got := s.imageNames(); got != fixture.Another || s.kubelet.ids != made+1 {
			t.Errorf("last endpoint %v: the pod has %s, and %d containers were started: %q", last, got, s.kubelet.ids-made, s.steps)
		}
		s.checkEnd()
	}
}

// TestFurtherRestartWithResources: a pod was restarted before its move. Another edit asks for another size and restart, and the pod
// restarts again.
func TestFurtherRestartWithResources(t *testing.T) {
	s := newLockstep(t, 1, func(d *apps.Deployment) { d.Spec.Template = fixture.App{Image: "v1", CPU: "100m"}.Template() })
	made := s.kubelet.ids
	s.edits(fixture.App{Image: "v1", CPU: "100m", Restarted: "1"})
	s.until(s.moved(1))
	s.rest()
	if s.kubelet.ids != made+1 {
		t.Fatalf("%d containers were started: %q", s.kubelet.ids-made, s.steps)
	}
	s.edits(fixture.App{Image: "v1", CPU: "200m", Restarted: "2"})
	s.killed()
	s.killed()
	if s.kubelet.ids < made+2 {
		t.Errorf("%d containers were started: %q", s.kubelet.ids-made, s.steps)
	}
	s.checkEnd()
}

// killed lets enough time pass for all containers that may have to be killed.
func (s *lockstep) killed() {
	s.rest()
	s.now = s.now.Add(readiness.GracePeriod(s.rollout().Seen.Pods[0]) + readiness.KubeletMargin)
	s.rest()
}

// TestDaemonResourcesThatRestartLeft: a pod's mark says that it restarts, and then Stayput no longer updates the DaemonSet. The pod serves
// again.
func TestDaemonResourcesThatRestartLeft(t *testing.T) {
	f := fixture.NewFleetOf(t, 1, fixture.App{Image: "v1", CPU: "100m", Renews: true})
	f.Edit(fixture.App{Image: "v1", CPU: "200m", Renews: true})
	for range 3 {
		f.Once()
	}
	f.Expect("mark 2 true false", "out p1", "p1 is updating-in-place app=v1")
	f.DaemonSet.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	f.Rest()
	if pod := f.Seen.Pods[0]; readiness.Out(pod) {
		t.Errorf("it is out of service: %q", f.Steps)
	}
}

// TestPodAtThePartitionThatDoesNotFit: a pod at the partition is not left to the native controller because it would not fit.
func TestPodAtThePartitionThatDoesNotFit(t *testing.T) {
	s := newSizedAt(t, 3, "1")
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.rest()
	s.waits("waiting at partition 1: 2 of 3 pods updated")
	r := s.rollout()
	for _, pod := range r.Seen.Pods {
		small := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}
		small.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("150m")}
		r.Seen.Nodes = append(r.Seen.Nodes, small)
	}
	if plan := r.Plan(); plan.Phase != steps.PhasePartition {
		t.Errorf("%s: %s", plan.Phase, plan.Message)
	}
}
