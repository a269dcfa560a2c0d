package deployments_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
)

// withoutStatus returns the steps of the plan in a few words, except that the status is written.
func withoutStatus(r *deployments.Rollout) string {
	planned := "," + strings.ReplaceAll(fixture.Brief(r.Plan().Steps), ", ", ",") + ","
	return strings.ReplaceAll(strings.Trim(strings.Replace(planned, ",status,", ",", 1), ","), ",", ", ")
}

// TestIdlePodsGoWhileASurgePodWaits: p does not serve and q does, both of the old revision, and a surge pod is to be removed. Until it is,
// q keeps serving. If it serves on until another pod does, p restarts meanwhile: it may be the one that has to.
func TestIdlePodsGoWhileASurgePodWaits(t *testing.T) {
	none := func(r *deployments.Rollout) {
		r.Seen.Settings.Surge, r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = inplace.SurgeNeeded, new(intstr.FromInt32(0))
	}
	budgeted := func(r *deployments.Rollout) { r.Seen.Disruption = fixture.Protected(2, 2, r.Seen.Pods) }
	scaled := func(r *deployments.Rollout) { r.Deployment.Spec.Replicas = new(int32(1)) }
	unmarked := func(r *deployments.Rollout) { delete(r.ReplicaSets[0].Labels, inplace.LabelUpdating) }
	for name, test := range map[string]struct {
		q, surge func(*corev1.Pod)
		changes  []func(*deployments.Rollout)
		want     string
	}{
		"it may go":                       {nil, nil, nil, "out surge"},
		"too few would be available":      {nil, nil, []func(*deployments.Rollout){none}, "out p"},
		"a PodDisruptionBudget keeps it":  {nil, nil, []func(*deployments.Rollout){budgeted}, "out p"},
		"q is Ready, and not long enough": {soonReady, nil, nil, "out p"},
		"it is drained":                   {nil, fixture.Out, []func(*deployments.Rollout){none}, "1 → 0"},
		"q may be scaled away": {fixture.Unready, nil, []func(*deployments.Rollout){none, scaled},
			"marks, replicas annotations, marks, replicas annotations"},
		"a mark is yet to be stored": {nil, nil, []func(*deployments.Rollout){none, unmarked}, "marks"},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(2, fixture.App{Image: "v2"})
			r.Deployment.Spec.MinReadySeconds = 60
			rolling := r.Deployment.Spec.Strategy.RollingUpdate
			rolling.MaxUnavailable, rolling.MaxSurge = new(intstr.FromInt32(1)), new(intstr.FromInt32(2))
			a, b := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
			a.Labels[inplace.LabelUpdating], b.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
			b.Labels[inplace.LabelSurgeReplicas] = "1"
			fixture.PodOf(r, "p", a, fixture.Unready)
			fixture.PodOf(r, "q", a, test.q)
			fixture.PodOf(r, "surge", b, func(pod *corev1.Pod) {
				pod.Annotations, pod.Spec.NodeName = map[string]string{inplace.AnnotationSurgePod: "true"}, "node-1"
			}, removing, test.surge)
			for _, change := range test.changes {
				change(r)
			}
			if planned := withoutStatus(r); planned != test.want {
				t.Errorf("planned %q, want %q", planned, test.want)
			}
		})
	}
}

// TestPodsLoseTheirTurns: r is out of service for its restart, and no longer to be patched. Without a turn it serves again, or another pod
// takes its place.
func TestPodsLoseTheirTurns(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*deployments.Rollout)
		want   string
	}{
		"it keeps its turn": {func(*deployments.Rollout) {}, "2 → 1"},
		"another client has added a pod, and it is the one that goes": {func(r *deployments.Rollout) {
			r.Deployment.Spec.Replicas, r.ReplicaSets[0].Labels[inplace.LabelSurgeReplicas] = new(int32(3)), "1"
			r.Seen.Pods[2].Annotations = map[string]string{inplace.AnnotationSurgePod: "true"}
		}, "back r"},
		"its node is unreachable": {func(r *deployments.Rollout) {
			node := fixture.MountingNode("n")
			node.Status.Conditions[0].Status = corev1.ConditionUnknown
			r.Seen.Nodes, r.Seen.Pods[2].Spec.NodeName = []*corev1.Node{node}, node.Name
		}, "marks, marks"},
	} {
		r := twoOfFour(nil, nil, fixture.Out, nil)
		r.Seen.Batches = nil
		test.change(r)
		if planned := withoutStatus(r); !strings.HasPrefix(planned, test.want) {
			t.Errorf("%s: planned %q, want %q first", name, planned, test.want)
		}
	}
}

// TestMovesWithoutARestartWait: where only labels change, a pod that moves is counted by no ReplicaSet for a moment. So it waits as a pod
// that restarts does.
func TestMovesWithoutARestartWait(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*deployments.Rollout)
		want   string
	}{
		"one may go":   {func(*deployments.Rollout) {}, "4 → 3"},
		"paused":       {func(r *deployments.Rollout) { r.Deployment.Spec.Paused = true }, ""},
		"one too many": {func(r *deployments.Rollout) { r.Deployment.Spec.Replicas = new(int32(3)) }, "marks, replicas annotations, marks"},
		"one has yet to restart for the last update, and serves until then": {notRestarted, ""},
	} {
		r := updateOf(fixture.App{Image: "v1"}, fixture.App{Image: "v1", Chart: "2"}, 1, [4]func(*corev1.Pod){})
		test.change(r)
		if planned := withoutStatus(r); planned != test.want {
			t.Errorf("%s: planned %q, want %q", name, planned, test.want)
		}
	}
}

// notRestarted has the first pod be one whose kubelet has not begun to act on its last patch.
func notRestarted(r *deployments.Rollout) {
	pod := r.Seen.Pods[0]
	pod.Generation = 2
	moved := readiness.Move{Hash: "a", Generation: 2, Containers: map[string]readiness.MovedContainer{
		"app": {Image: "v1", ImageID: "sha256:v0", ContainerID: "p/app", At: metav1.NewTime(fixture.Start)}}}
	pod.Annotations = map[string]string{inplace.AnnotationMove: moved.String()}
}

// TestABrokenRevisionGetsFewPods: two pods may be unavailable, and one surge pod is allowed, so natively three pods at most would be on a
// revision that does not work. Pods of the old revision that do not serve stay there beyond that, so that an undo has something to go
// back to.
func TestABrokenRevisionGetsFewPods(t *testing.T) {
	sick, out := fixture.Unready, fixture.Out
	for name, test := range map[string]struct {
		p, q, r, s func(*corev1.Pod)
		want       string
	}{
		"the new ones work":                     {nil, nil, sick, sick, "out r, out s"},
		"one does not":                          {nil, sick, sick, sick, "out r, out s"},
		"neither works":                         {sick, sick, sick, sick, "out r"},
		"neither works, and a third is to come": {sick, sick, out, sick, "2 → 1"},
	} {
		r := twoOfFour(test.p, test.q, test.r, test.s)
		r.Seen.Batches = nil
		if planned := withoutStatus(r); planned != test.want {
			t.Errorf("%s: planned %q, want %q", name, planned, test.want)
		}
	}
}

// TestPodsBeginBeforeOthersAreCounted: the ReplicaSet controller counts pods that have moved only after it has tried to delete others. Pods
// that waited for that would take several times as long.
func TestPodsBeginBeforeOthersAreCounted(t *testing.T) {
	r := twoOfFour(nil, nil, nil, nil)
	r.Seen.Batches = nil
	uncounted(r)
	if planned, want := withoutStatus(r), "out r, out s"; planned != want {
		t.Errorf("planned %q, want %q", planned, want)
	}
}
