package prepull_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/steps"
)

// TestNodeHasTheImage: where a node does not certainly have the new image, a container that has stopped would wait for the registry. So the
// node pulls first, or users are told why it cannot. The pod that is to be updated runs on node n1, beside a pod that was updated before.
func TestNodeHasTheImage(t *testing.T) {
	const hasIt, pulls, cannotPull = "has it", "pulls", "cannot pull"
	lists := func(image string) func(*corev1.Node, *corev1.Pod) {
		return func(node *corev1.Node, updated *corev1.Pod) {
			node.Status.NodeInfo.KubeletVersion = "v1.34.9" // newer kubelets may ask the registry all the same
			node.Status.Images = []corev1.ContainerImage{{Names: []string{image}}}
			updated.Spec.NodeName = "n2"
		}
	}
	for name, test := range map[string]struct {
		change func(node *corev1.Node, updated *corev1.Pod)
		want   string
	}{
		"the updated pod runs it":           {func(*corev1.Node, *corev1.Pod) {}, hasIt},
		"the updated pod runs it elsewhere": {func(_ *corev1.Node, updated *corev1.Pod) { updated.Spec.NodeName = "n2" }, pulls},
		"the updated pod was patched, and its old container runs": {func(_ *corev1.Node, updated *corev1.Pod) {
			updated.Status.ContainerStatuses[0].Image = "app:1"
		}, pulls},
		"an old kubelet lists it":                       {lists("docker.io/library/app:2"), hasIt},
		"an old kubelet lists it from another registry": {lists("r.io/app:2"), cannotPull},
	} {
		r := fixture.New(2, fixture.App{Image: "app:2"})
		r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(2))
		r.Seen.Settings.PrePullParallelism, r.Seen.Pull.WaitImage = 1, fixture.WaitImage
		r.Seen.Nodes = []*corev1.Node{fixture.MountingNode("n1"), fixture.MountingNode("n2")}
		for i, image := range []string{"app:1", "app:2"} {
			rs := fixture.ReplicaSetOf(r, []string{"a", "b"}[i], fixture.App{Image: image}, 1)
			rs.Labels[inplace.LabelUpdating] = fixture.Begun
			fixture.PodOf(r, image, rs, func(pod *corev1.Pod) { pod.Spec.NodeName = "n1" })
		}
		test.change(r.Seen.Nodes[0], r.Seen.Pods[1])
		plan, got := r.Plan(), hasIt
		if plan.NotPulled != "" {
			got = cannotPull
		}
		if slices.ContainsFunc(plan.Steps, func(step steps.Step) bool { _, is := step.(steps.CreatePrePullPod); return is }) {
			got = pulls
		}
		if out := slices.ContainsFunc(plan.Steps, steps.TakesOut); got != test.want || out == (got == pulls) {
			t.Errorf("%s: the node %s, and the pod is taken out %t", name, got, out)
		}
	}
}

// TestFailing: a DaemonSet or StatefulSet has stalled where its images cannot be pulled. An error of Stayput's own image says nothing of
// them, since kubelets pull it last.
func TestFailing(t *testing.T) {
	const failed = "ErrImagePull"
	for name, test := range map[string]struct {
		reason, message string
		terminating     bool
		want            string
	}{
		"it is being pulled": {reason: "ContainerCreating"},
		"it does not exist": {reason: failed, message: `"app:2": not found`,
			want: `node n1 cannot pre-pull images: "app:2": not found`},
		"it does not exist, and the pre-pull pod is being deleted": {reason: failed, message: `"app:2": not found`, terminating: true},
		"the registry does not answer": {reason: failed, message: "i/o timeout",
			want: "node n1 cannot pre-pull images: i/o timeout"},
		"no message":                         {reason: failed, want: "node n1 cannot pre-pull images: " + failed},
		"Stayput's own image does not exist": {reason: failed, message: `"stayput/stayput:v1": not found`},
	} {
		r, running := fixture.ToV2()
		running.Spec.NodeName = "n1"
		owner := prepull.OwnedBy(r.Deployment, r.UpdateRevision().UID, "Deployment", r.Deployment)
		pod := prepull.NewPod(owner, running, []prepull.VolumeImage{{Reference: "app:2"}}, fixture.WaitImage)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: prepull.WaitContainer, State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: test.reason, Message: test.message}}}}
		if test.terminating {
			pod.DeletionTimestamp = new(metav1.NewTime(fixture.Start))
		}
		if got := (prepull.Pulling{PrePullPods: []*corev1.Pod{pod}}).Failing(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
