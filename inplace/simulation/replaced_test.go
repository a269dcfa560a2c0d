package simulation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
)

// small has the nodes not have more CPU than that.
func (f *fleet) small(cpu string, nodes ...string) {
	for _, name := range nodes {
		f.node(name).Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

// letsGo demands which pods the native controller may delete.
func (f *fleet) letsGo(want map[string]bool) {
	f.t.Helper()
	for _, pod := range f.Pods {
		if held, why := f.HoldsDeletion(pod); held == want[pod.Name] {
			f.t.Errorf("the deletion of %s is held %t: %s", pod.Name, held, why.Message)
		}
	}
}

// replaced has the native controller delete the pod and make another.
func (f *fleet) replaced(name string) {
	for i, pod := range f.Pods {
		if pod.Name == name {
			node := pod.Spec.NodeName
			f.Pods = append(f.Pods[:i:i], f.Pods[i+1:]...)
			created := f.addPod(name, node)
			created.Labels[inplace.LabelRevisionHash] = f.UpdateRevision().Labels[inplace.LabelRevisionHash]
			created.Spec.Containers = f.DaemonSet.Spec.Template.Typed().Spec.Containers
			delete(f.runs, name+"/app")
			return
		}
	}
}

// A pod that does not serve takes up the budget of those it would wait for.
func TestDaemonThatDoesNotServeIsReplacedAtOnce(t *testing.T) {
	t.Run("its node has too little", func(t *testing.T) {
		f := newSizedFleet(t, 2)
		f.small("150m", "n1")
		f.edit(app{image: "v1", cpu: "200m"})
		f.letsGo(nil) // it serves, so others come first
		f.ail("p1")
		f.letsGo(map[string]bool{"p1": true})
		f.sick = ""
		f.replaced("p1")
		f.rest()
		f.updatedAll("2", "app=v1")
	})
	t.Run("its revision is too different", func(t *testing.T) {
		f := newFleet(t, 2)
		f.edit(app{image: "v1", env: "a"})
		f.Pods[1].Labels[inplace.LabelRevisionHash] = "2"
		f.edit(app{image: "v2"})
		f.letsGo(nil)
		f.ail("p2")
		f.letsGo(map[string]bool{"p2": true})
	})
}

// Who may be replaced at once takes of what the partition leaves, as who moves does, and those that it keeps stay.
func TestDaemonsThatDoNotServeAtAPartition(t *testing.T) {
	f := newSizedFleet(t, 3).keeps("2")
	maxUnavailable("3")(f)
	f.small("150m", "n1", "n2")
	f.edit(app{image: "v1", cpu: "200m"})
	for _, pod := range f.Pods[:2] {
		unready(pod)
	}
	f.letsGo(map[string]bool{"p1": true})
	for range 5 {
		f.sick = "p1"
		f.once()
		unready(f.Pods[1])
	}
	if f.Pods[2].Spec.Containers[0].Resources.Requests.Cpu().String() != "100m" {
		t.Errorf("p3 takes the place of p1: %q", f.steps)
	}
	f.replaced("p1")
	f.letsGo(nil)
}

// What has moved is no longer kept, and does not wait for who is.
func TestDaemonThatMovedIsReplacedAtAPartition(t *testing.T) {
	t.Run("its node has too little", func(t *testing.T) {
		f := newSizedFleet(t, 3).keeps("2")
		f.edit(app{image: "v1", cpu: "200m"})
		f.rest()
		f.small("250m", "n1")
		f.edit(app{image: "v1", cpu: "300m"})
		f.rest()
		f.letsGo(map[string]bool{"p1": true})
		f.replaced("p1")
		f.rest()
		if plan := f.Plan(); plan.Message != "waiting at partition 2: 1 of 3 pods updated" || !plan.Decision.Held {
			t.Errorf("the plan is %s %q", plan.Phase, plan.Message)
		}
	})
	t.Run("it cannot lose what it got", func(t *testing.T) {
		f := newFleet(t, 3).keeps("2")
		f.edit(app{image: "v2", tolerates: "t"})
		f.rest()
		if hash := f.Pods[0].Labels[inplace.LabelRevisionHash]; hash != "2" || !conditions.IsTrue(f.Pods[0], corev1.PodReady) {
			t.Fatalf("p1 is of %s: %q", hash, f.steps)
		}
		f.edit(app{image: "v3"})
		f.rest()
		f.letsGo(map[string]bool{"p1": true})
		if plan := f.Plan(); !plan.Decision.Held {
			t.Errorf("the plan is %s %q", plan.Phase, plan.Message)
		}
	})
}

// Two that cannot be updated where they are, each for another reason, do not wait for one another: how many at a time the native controller knows.
func TestDaemonsThatMustBeReplacedDoNotWaitForEachOther(t *testing.T) {
	f := newSizedFleet(t, 2)
	f.edit(app{image: "v1", cpu: "100m", env: "a"})
	f.Pods[1].Labels[inplace.LabelRevisionHash] = "2"
	f.small("150m", "n1")
	f.edit(app{image: "v1", cpu: "200m"})
	f.rest()
	f.letsGo(map[string]bool{"p1": true, "p2": true})
}
