package simulation

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/nodes"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/steps"
)

// nodeThat is a node of which this is known.
func nodeThat(ready corev1.ConditionStatus) *corev1.Node {
	node := mountingNode("n1")
	node.Status.Conditions[0].Status = ready
	return node
}

// readyAfter is what the API server stores of the pod's Ready with the plan's write that opens its gate; empty if none does.
func readyAfter(t *testing.T, plan steps.Plan, pod *corev1.Pod) corev1.ConditionStatus {
	t.Helper()
	for _, step := range plan.Steps {
		if gate, is := step.(steps.SetGate); is && gate.Open {
			opened := pod.DeepCopy()
			if err := apply(opened, gate.Operations); err != nil {
				t.Fatal(err)
			}
			opened.Status.Conditions = readiness.StoredConditions(pod, opened, readiness.OwnWriter)
			return conditionStatus(opened, corev1.PodReady)
		}
	}
	return ""
}

// Where the API server says what is Ready, an open gate could have a pod in the slices whose node is down. It opens all the same: it may be that no
// manager runs when the node is back.
func TestGateOpensOnAnUnreachableNode(t *testing.T) {
	for node, want := range map[corev1.ConditionStatus]corev1.ConditionStatus{
		corev1.ConditionTrue:    corev1.ConditionTrue,
		corev1.ConditionFalse:   corev1.ConditionTrue, // its kubelet says that it is not well
		corev1.ConditionUnknown: corev1.ConditionFalse,
	} {
		for _, mode := range []inplace.Mode{inplace.ModeInPlace, inplace.ModeNone} {
			t.Run(fmt.Sprint(node, mode), func(t *testing.T) {
				r := fixture(1, app{image: "v1"}) // undone
				pod := podOf(r, "p", replicaSetOf(r, "a", app{image: "v1"}, 1), drained)
				pod.Spec.NodeName = "n1"
				r.Mode, r.Nodes = mode, []*corev1.Node{nodeThat(node)}
				if got := readyAfter(t, r.Plan(), pod); got != want {
					t.Errorf("the Deployment's pod becomes %q", got)
				}
				f := newFleet(t, 1)
				drained(f.Pods[0])
				f.Mode = mode
				f.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: node}}
				if got := readyAfter(t, f.Plan(), f.Pods[0]); got != want {
					t.Errorf("the DaemonSet's pod becomes %q", got)
				}
			})
		}
	}
}

// A node dies, and is called Ready for most of a minute after that. A pod that was patched meanwhile never follows.
func TestPatchedAfterItsNodeHasDied(t *testing.T) {
	unseen := readiness.Move{Generation: 2, Containers: map[string]readiness.MovedContainer{
		"app": {Image: "v2", ImageID: "sha256:v1", ContainerID: "p/app", At: metav1.NewTime(start)}}}
	for name, c := range map[string]struct {
		node     corev1.ConditionStatus
		observed int64
		want     bool
	}{
		"its kubelet is heard of":       {corev1.ConditionTrue, 1, false},
		"it is not":                     {corev1.ConditionUnknown, 1, true},
		"it had seen the patch by then": {corev1.ConditionUnknown, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture(2, app{image: "v2"})
			replicaSetOf(r, "a", app{image: "v1"}, 1)
			newRS := replicaSetOf(r, "b", app{image: "v2"}, 1)
			pod := podOf(r, "p", newRS, drained)
			pod.Spec.NodeName, pod.Generation, pod.Status.ObservedGeneration = "n1", 2, c.observed
			pod.Status.ContainerStatuses[0].ImageID, pod.Status.ContainerStatuses[0].Image = "sha256:v1", "v1"
			pod.Annotations = map[string]string{inplace.AnnotationMove: unseen.String()}
			r.Nodes = []*corev1.Node{nodeThat(c.node)}
			m := &replicas.Pod{State: podstate.StateOf((&steps.PlanBuilder{}), pod, podstate.Origin{Updated: true}, dryrun.NewPods{}, nil, 0, start)}
			if lost := nodes.KnownUnreachable(r.Nodes[0]) && m.WaitsForKubelet(true); lost != c.want {
				t.Errorf("lost is %t", lost)
			}
		})
	}
}

// The whole of it: the pod is given up and another comes in its place, although it is the target's already.
func TestNodeUnreachableRightBehindAPatch(t *testing.T) {
	s := newObserved(t, 4, nil, false)
	s.pulls(4)
	before := sorted(s.pods.objects)
	s.edit("sets the image", app{image: "v2"})
	s.until(s.moved(1))
	var dead *corev1.Pod
	for _, pod := range sorted(s.pods.objects) {
		if metav1.IsControlledBy(pod, s.rollout().UpdateRevision()) {
			dead = pod
		}
	}
	if dead.Status.ObservedGeneration >= dead.Generation {
		t.Fatal("its kubelet has seen the patch")
	}
	s.goesDown(dead.Spec.NodeName)
	s.rest()
	if !s.complete() {
		t.Fatalf("the update does not end: %s", s.describe())
	}
	for _, pod := range sorted(s.pods.objects) {
		if pod.DeletionTimestamp != nil {
			remove(s.world, s.pods, pod.Name) // by the garbage collector, once its node is gone
		}
	}
	s.intact(slices.DeleteFunc(before, func(pod *corev1.Pod) bool { return pod.Name == dead.Name }))
}
