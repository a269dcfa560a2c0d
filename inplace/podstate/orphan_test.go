package podstate_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

func TestOrphan(t *testing.T) {
	// patchedAt makes the kubelet run a container that may be the old one or the new one.
	patchedAt := func(at time.Time) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			fixture.Drained(pod)
			move := readiness.Move{Hash: "b",
				Containers: map[string]readiness.MovedContainer{"app": {Image: "v2", Unsure: true, At: metav1.NewTime(at)}}}
			pod.Annotations = map[string]string{inplace.AnnotationMove: move.String()}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Image: "v1", Ready: true,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}
	}
	patience := corev1.DefaultTerminationGracePeriodSeconds*time.Second + readiness.KillMargin
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		may    bool
		wait   time.Duration
	}{
		"was to be patched": {fixture.Drained, true, 0},
		"was to be removed": {func(pod *corev1.Pod) {
			fixture.Drained(pod)
			pod.Annotations = map[string]string{inplace.AnnotationSurgePod: "true", corev1.PodDeletionCost: readiness.LowestDeletionCost}
		}, true, 0},
		"was patched just now": {patchedAt(fixture.Start), false, patience},
		"was patched long ago": {patchedAt(fixture.Start.Add(-patience)), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), c.change)
			step, may, wait := podstate.Orphan(pod, false, fixture.Start)
			if gate, opens := step.(steps.SetGate); !opens || !gate.Open || may != c.may || wait != c.wait {
				t.Errorf("%s: %t, or in %s", step.Describe(), may, wait)
			}
		})
	}
}

func TestMayBeOrphan(t *testing.T) {
	labelled := func(pod *corev1.Pod) { pod.Labels = map[string]string{inplace.LabelPrePull: "uid"} }
	ownedBy := func(kind string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			labelled(pod)
			pod.OwnerReferences[0].Kind = kind
		}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"serves":             {func(*corev1.Pod) {}, false},
		"its gate is closed": {fixture.Drained, true},
		"its gate is closed, but it is being deleted": {func(pod *corev1.Pod) { fixture.Drained(pod); pod.DeletionTimestamp = &metav1.Time{} },
			false},
		"its gate is closed, but it has failed": {func(pod *corev1.Pod) { fixture.Drained(pod); pod.Status.Phase = corev1.PodFailed },
			false},
		"pulls for a Deployment": {ownedBy("Deployment"), true},
		"pulls for a DaemonSet":  {ownedBy("ControllerRevision"), true},
		"its pull failed": {func(pod *corev1.Pod) { ownedBy("Deployment")(pod); pod.Status.Phase = corev1.PodFailed },
			true},
		"pulls without an owner":        {func(pod *corev1.Pod) { labelled(pod); pod.OwnerReferences = nil }, true},
		"has a label from its template": {labelled, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			if got := podstate.MayBeOrphan(fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1),
				c.change)); got != c.want {
				t.Errorf("may be an orphan is %t", got)
			}
		})
	}
}
