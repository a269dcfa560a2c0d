package simulation

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// nodeThat returns a node with that status of Ready.
func nodeThat(ready corev1.ConditionStatus) *corev1.Node {
	node := fixture.MountingNode("n1")
	node.Status.Conditions[0].Status = ready
	return node
}

// TestPodOnAnUnreachableNodeStaysOut: its status says nothing about its containers, so the leader does not put it back into service. Its
// kubelet does, when it is back.
func TestPodOnAnUnreachableNodeStaysOut(t *testing.T) {
	for node, want := range map[corev1.ConditionStatus]bool{
		corev1.ConditionTrue:    true,
		corev1.ConditionFalse:   true, // its kubelet says that it is not well
		corev1.ConditionUnknown: false,
	} {
		for _, mode := range []inplace.Mode{inplace.ModeInPlace, inplace.ModeNone} {
			t.Run(fmt.Sprint(node, mode), func(t *testing.T) {
				r := fixture.New(1, fixture.App{Image: "v1"}) // undone
				pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.Out)
				pod.Spec.NodeName = "n1"
				r.Seen.Mode, r.Seen.Nodes = mode, []*corev1.Node{nodeThat(node)}
				if got := fixture.Brief(r.Plan().Steps) == "back p"; got != want {
					t.Errorf("the Deployment's pod is put back: %t", got)
				}
				f := fixture.NewFleet(t, 1)
				fixture.Out(f.Seen.Pods[0])
				f.Seen.Mode = mode
				f.Seen.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: node}}
				if got := fixture.Brief(f.Plan().Steps) == "back p1"; got != want {
					t.Errorf("the DaemonSet's pod is put back: %t", got)
				}
			})
		}
	}
}

// TestPatchedAfterItsNodeHasDied: a node dies, and is called Ready for most of a minute after that. The kubelet never applies a patch of
// that time.
func TestPatchedAfterItsNodeHasDied(t *testing.T) {
	unseen := readiness.Move{Generation: 2, Containers: map[string]readiness.MovedContainer{
		"app": {Image: "v2", ImageID: "sha256:v1", ContainerID: "p/app", At: metav1.NewTime(fixture.Start)}}}
	for name, c := range map[string]struct {
		node     corev1.ConditionStatus
		observed int64
		want     bool
	}{
		"its kubelet is reachable":      {corev1.ConditionTrue, 1, false},
		"its kubelet is unreachable":    {corev1.ConditionUnknown, 1, true},
		"it had seen the patch by then": {corev1.ConditionUnknown, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(2, fixture.App{Image: "v2"})
			fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1)
			newRS := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
			pod := fixture.PodOf(r, "p", newRS, fixture.Out)
			pod.Spec.NodeName, pod.Generation, pod.Status.ObservedGeneration = "n1", 2, c.observed
			pod.Status.ContainerStatuses[0].ImageID, pod.Status.ContainerStatuses[0].Image = "sha256:v1", "v1"
			pod.Annotations = map[string]string{inplace.AnnotationMove: unseen.String()}
			r.Seen.Nodes = []*corev1.Node{nodeThat(c.node)}
			m := &deployments.Pod{State: podstate.StateOf((&steps.PlanBuilder{}), pod,
				podstate.PodRevision{Updated: true}, dryrun.NewPods{}, 0, fixture.Start)}
			if unreachable := readiness.Unreachable(r.Seen.Nodes[0]) && m.WaitsForKubelet(true); unreachable != c.want {
				t.Errorf("unreachable is %t", unreachable)
			}
		})
	}
}

// TestNodeUnreachableRightBehindAPatch: the same in a cluster. The pod is deleted and another comes in its place, although it already has
// the update revision, and whether surge pods are allowed or not.
func TestNodeUnreachableRightBehindAPatch(t *testing.T) {
	one, none := intstr.FromInt32(1), intstr.FromInt32(0)
	t.Run("maxSurge 25%", func(t *testing.T) { unreachableRightBehindAPatch(newLockstep(t, 4, nil)) })
	t.Run("maxSurge 0", func(t *testing.T) {
		unreachableRightBehindAPatch(newLockstep(t, 4, func(d *apps.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: &one, MaxSurge: &none}
		}))
	})
}

func unreachableRightBehindAPatch(s *lockstep) {
	s.t.Helper()
	s.pulls(4)
	before := sorted(s.pods.objects)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.until(s.moved(1))
	var dead *corev1.Pod
	for _, pod := range sorted(s.pods.objects) {
		if metav1.IsControlledBy(pod, s.rollout().UpdateRevision()) {
			dead = pod
		}
	}
	if dead.Status.ObservedGeneration >= dead.Generation {
		s.t.Fatal("its kubelet has seen the patch")
	}
	s.goesDown(dead.Spec.NodeName)
	s.rest()
	if !s.complete() {
		s.t.Fatalf("the update does not end: %s", s.describe())
	}
	for _, pod := range sorted(s.pods.objects) {
		if pod.DeletionTimestamp != nil {
			remove(s.world, s.pods, pod.Name) // as the garbage collector does once its node is gone
		}
	}
	s.intact(slices.DeleteFunc(before, func(pod *corev1.Pod) bool { return pod.Name == dead.Name }))
}
