package deployments_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// TestOnlyPodsThatNeedTheirKubeletAreReplaced: a pod on an unreachable node does not serve. Stayput has another one created where only the
// kubelet could bring the pod to the update revision. As natively, it leaves all others to the node controller.
func TestOnlyPodsThatNeedTheirKubeletAreReplaced(t *testing.T) {
	const updated, old = 0, 2
	patched := func(back map[string]string) func(*deployments.Rollout, *corev1.Pod) {
		mark := readiness.Move{Hash: "b", Generation: 2, Back: back, Containers: map[string]readiness.MovedContainer{
			"app": {Image: "v2", ImageID: "sha256:v1", At: metav1.NewTime(fixture.Start)}}}
		return func(_ *deployments.Rollout, pod *corev1.Pod) {
			pod.Annotations, pod.Generation, pod.Spec.Containers[0].Image = map[string]string{inplace.AnnotationMove: mark.String()}, 2, "v2"
		}
	}
	for name, test := range map[string]struct {
		pod    int
		change func(*deployments.Rollout, *corev1.Pod)
		want   bool
	}{
		"it is to restart":        {old, func(*deployments.Rollout, *corev1.Pod) {}, true},
		"it was patched in part":  {old, patched(map[string]string{"app": "v1"}), true},
		"it was patched in whole": {updated, patched(nil), true},
		"a partition keeps it":    {old, func(r *deployments.Rollout, _ *corev1.Pod) { r.Seen.Settings.Partition.Value = "2" }, false},
		"it was created with the update revision, and no kubelet has seen it": {updated, func(_ *deployments.Rollout, pod *corev1.Pod) {
			pod.Status.ObservedGeneration = 0
		}, false},
	} {
		r := twoOfFour(nil, nil, nil, nil)
		node, pod := fixture.MountingNode("n"), r.Seen.Pods[test.pod]
		node.Status.Conditions[0].Status = corev1.ConditionUnknown
		r.Seen.Nodes, r.Seen.Batches = []*corev1.Node{node}, nil
		fixture.Unready(pod)
		pod.Spec.NodeName = node.Name
		if test.change(r, pod); (r.Plan().Phase == steps.PhaseScaling) != test.want {
			t.Errorf("%s: it is replaced: %t", name, !test.want)
		}
	}
}

// TestNoteOfAResizeNamesARevision: before a pod gets other CPU, its mark notes that. If the user edits again while containers of the pod
// have restarted for revision b, the mark goes on to name b: if it named c, the pod would count as restarted for c. If none has, it names
// c: a mark that names the pod's own revision says that nothing is left to take back, and a policy would refuse to take back the CPU.
func TestNoteOfAResizeNamesARevision(t *testing.T) {
	for name, test := range map[string]struct {
		mark readiness.Move
		want string
	}{
		"it has restarted for b":         {readiness.Move{Hash: "b", Back: map[string]string{"app": "v1"}}, "b"},
		"its last move ended":            {readiness.Move{Hash: "a"}, "c"},
		"it was created with revision a": {readiness.Move{}, "c"},
	} {
		r := fixture.New(1, fixture.App{Image: "v2", CPU: "200m"})
		a := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1", CPU: "100m"}, 1)
		c := fixture.ReplicaSetOf(r, "c", fixture.App{Image: "v2", CPU: "200m"}, 0)
		a.Labels[inplace.LabelUpdating], c.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
		pod := fixture.PodOf(r, "p", a)
		pod.Annotations = map[string]string{inplace.AnnotationMove: test.mark.String()}
		if len(test.mark.Back) > 0 {
			pod.Spec.Containers[0].Image = "v2"
		}
		for _, step := range r.Plan().Steps {
			if patch, is := step.(steps.PatchPod); is {
				if err := fixture.Apply(pod, patch.Operations); err != nil {
					t.Fatal(err)
				}
			}
		}
		if noted := readiness.MoveOf(pod); noted.Hash != test.want || !noted.Resize.Of("app") {
			t.Errorf("%s: the mark is %s, and should name %s", name, noted, test.want)
		}
	}
}
