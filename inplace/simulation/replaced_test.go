package simulation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// small limits the allocatable CPU of the nodes.
func (f *fleet) small(cpu string, nodes ...string) {
	for _, name := range nodes {
		f.node(name).Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

// mayDelete demands which pods the native controller may delete.
func (f *fleet) mayDelete(want map[string]bool) {
	f.t.Helper()
	for _, pod := range f.Seen.Pods {
		if held, why := f.HoldsDeletion(pod); held == want[pod.Name] {
			f.t.Errorf("the deletion of %s is held %t: %s", pod.Name, held, why.Message)
		}
	}
}

// replaced lets the native controller delete the pod and create another.
func (f *fleet) replaced(name string) {
	for i, pod := range f.Seen.Pods {
		if pod.Name == name {
			node := pod.Spec.NodeName
			f.Seen.Pods = append(f.Seen.Pods[:i:i], f.Seen.Pods[i+1:]...)
			created := f.addPod(name, node)
			created.Labels[inplace.LabelRevisionHash] = f.UpdateRevision().Labels[inplace.LabelRevisionHash]
			created.Spec.Containers = f.DaemonSet.Spec.Template.Typed().Spec.Containers
			delete(f.runs, name+"/app")
			return
		}
	}
}

// TestDaemonThatDoesNotServeIsReplacedAtOnce: a pod that does not serve takes the budget of the pods for which it would wait.
func TestDaemonThatDoesNotServeIsReplacedAtOnce(t *testing.T) {
	t.Run("its node has too little", func(t *testing.T) {
		f := newSizedFleet(t, 2)
		f.small("150m", "n1")
		f.edit(fixture.App{Image: "v1", CPU: "200m"})
		f.mayDelete(nil) // it serves, so others come first
		f.ail("p1")
		f.mayDelete(map[string]bool{"p1": true})
		f.sick = ""
		f.replaced("p1")
		f.rest()
		f.updatedAll("2", "app=v1")
	})
	t.Run("its revision is too different", func(t *testing.T) {
		f := newFleet(t, 2)
		f.edit(fixture.App{Image: "v1", Env: "a"})
		f.Seen.Pods[1].Labels[inplace.LabelRevisionHash] = "2"
		f.edit(fixture.App{Image: "v2"})
		f.mayDelete(nil)
		f.ail("p2")
		f.mayDelete(map[string]bool{"p2": true})
	})
}

// TestDaemonsThatDoNotServeAtAPartition: pods that may be replaced at once take from the partition budget, as pods that move do. Pods at
// the partition stay.
func TestDaemonsThatDoNotServeAtAPartition(t *testing.T) {
	f := newSizedFleet(t, 3).atPartition("2")
	maxUnavailable("3")(f)
	f.small("150m", "n1", "n2")
	f.edit(fixture.App{Image: "v1", CPU: "200m"})
	for _, pod := range f.Seen.Pods[:2] {
		fixture.Unready(pod)
	}
	f.mayDelete(map[string]bool{"p1": true})
	for range 5 {
		f.sick = "p1"
		f.once()
		fixture.Unready(f.Seen.Pods[1])
	}
	if f.Seen.Pods[2].Spec.Containers[0].Resources.Requests.Cpu().String() != "100m" {
		t.Errorf("p3 takes the place of p1: %q", f.steps)
	}
	f.replaced("p1")
	f.mayDelete(nil)
}

// TestDaemonThatMovedIsReplacedAtAPartition: a pod that has moved is no longer at the partition, and does not wait for those that are.
func TestDaemonThatMovedIsReplacedAtAPartition(t *testing.T) {
	t.Run("its node has too little", func(t *testing.T) {
		f := newSizedFleet(t, 3).atPartition("2")
		f.edit(fixture.App{Image: "v1", CPU: "200m"})
		f.rest()
		f.small("250m", "n1")
		f.edit(fixture.App{Image: "v1", CPU: "300m"})
		f.rest()
		f.mayDelete(map[string]bool{"p1": true})
		f.replaced("p1")
		f.rest()
		if plan := f.Plan(); plan.Message != "waiting at partition 2: 1 of 3 pods updated" || !plan.Decision.Held {
			t.Errorf("the plan is %s %q", plan.Phase, plan.Message)
		}
	})
	t.Run("it cannot lose what it got", func(t *testing.T) {
		f := newFleet(t, 3).atPartition("2")
		f.edit(fixture.App{Image: "v2", Tolerates: "t"})
		f.rest()
		if hash := f.Seen.Pods[0].Labels[inplace.LabelRevisionHash]; hash != "2" || !conditions.IsTrue(f.Seen.Pods[0], corev1.PodReady) {
			t.Fatalf("p1 is of %s: %q", hash, f.steps)
		}
		f.edit(fixture.App{Image: "v3"})
		f.rest()
		f.mayDelete(map[string]bool{"p1": true})
		if plan := f.Plan(); !plan.Decision.Held {
			t.Errorf("the plan is %s %q", plan.Phase, plan.Message)
		}
	})
}

// TestDaemonsThatMustBeReplacedDoNotWaitForEachOther: two pods cannot be updated in place, each for another reason. They do not wait for
// each other: the native controller knows how many to replace at a time.
func TestDaemonsThatMustBeReplacedDoNotWaitForEachOther(t *testing.T) {
	f := newSizedFleet(t, 2)
	f.edit(fixture.App{Image: "v1", CPU: "100m", Env: "a"})
	f.Seen.Pods[1].Labels[inplace.LabelRevisionHash] = "2"
	f.small("150m", "n1")
	f.edit(fixture.App{Image: "v1", CPU: "200m"})
	f.rest()
	f.mayDelete(map[string]bool{"p1": true, "p2": true})
}
