package daemonsets_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestDaemonThatDoesNotServeIsReplacedAtOnce: a pod that does not serve takes the budget of the pods for which it would wait.
func TestDaemonThatDoesNotServeIsReplacedAtOnce(t *testing.T) {
	t.Run("its node has too little", func(t *testing.T) {
		f := fixture.NewSizedFleet(t, 2)
		f.Small("150m", "n1")
		f.Edit(fixture.App{Image: "v1", CPU: "200m"})
		f.MayDelete(nil) // it serves, so others come first
		f.Ail("p1")
		f.MayDelete(map[string]bool{"p1": true})
		f.Sick = ""
		f.Replaced("p1")
		f.Rest()
		f.UpdatedAll("2", "app=v1")
	})
	t.Run("its revision is too different", func(t *testing.T) {
		f := fixture.NewFleet(t, 2)
		f.Edit(fixture.App{Image: "v1", Env: "a"})
		f.Seen.Pods[1].Labels[inplace.LabelRevisionHash] = "2"
		f.Edit(fixture.App{Image: "v2"})
		f.MayDelete(nil)
		f.Ail("p2")
		f.MayDelete(map[string]bool{"p2": true})
	})
}

// TestDaemonsThatDoNotServeAtAPartition: pods that may be replaced at once take from the partition budget, as pods that move do. Pods at
// the partition stay.
func TestDaemonsThatDoNotServeAtAPartition(t *testing.T) {
	f := fixture.NewSizedFleet(t, 3).AtPartition("2")
	fixture.MaxUnavailable("3")(f)
	f.Small("150m", "n1", "n2")
	f.Edit(fixture.App{Image: "v1", CPU: "200m"})
	for _, pod := range f.Seen.Pods[:2] {
		fixture.Unready(pod)
	}
	f.MayDelete(map[string]bool{"p1": true})
	for range 5 {
		f.Sick = "p1"
		f.Once()
		fixture.Unready(f.Seen.Pods[1])
	}
	if f.Seen.Pods[2].Spec.Containers[0].Resources.Requests.Cpu().String() != "100m" {
		t.Errorf("p3 takes the place of p1: %q", f.Steps)
	}
	f.Replaced("p1")
	f.MayDelete(nil)
}

// TestDaemonThatMovedIsReplacedAtAPartition: a pod that has moved is no longer at the partition, and does not wait for those that are.
func TestDaemonThatMovedIsReplacedAtAPartition(t *testing.T) {
	t.Run("its node has too little", func(t *testing.T) {
		f := fixture.NewSizedFleet(t, 3).AtPartition("2")
		f.Edit(fixture.App{Image: "v1", CPU: "200m"})
		f.Rest()
		f.Small("250m", "n1")
		f.Edit(fixture.App{Image: "v1", CPU: "300m"})
		f.Rest()
		f.MayDelete(map[string]bool{"p1": true})
		f.Replaced("p1")
		f.Rest()
		if plan := f.Plan(); plan.Message != "waiting at partition 2: 1 of 3 pods updated" || !plan.Decision.Held {
			t.Errorf("the plan is %s %q", plan.Phase, plan.Message)
		}
	})
	t.Run("it cannot lose what it got", func(t *testing.T) {
		f := fixture.NewFleet(t, 3).AtPartition("2")
		f.Edit(fixture.App{Image: "v2", Tolerates: "t"})
		f.Rest()
		if hash := f.Seen.Pods[0].Labels[inplace.LabelRevisionHash]; hash != "2" || !apps.IsTrue(f.Seen.Pods[0], corev1.PodReady) {
			t.Fatalf("p1 is of %s: %q", hash, f.Steps)
		}
		f.Edit(fixture.App{Image: "v3"})
		f.Rest()
		f.MayDelete(map[string]bool{"p1": true})
		if plan := f.Plan(); !plan.Decision.Held {
			t.Errorf("the plan is %s %q", plan.Phase, plan.Message)
		}
	})
}

// TestDaemonsThatMustBeReplacedDoNotWaitForEachOther: two pods cannot be updated in place, each for another reason. They do not wait for
// each other: the native controller knows how many to replace at a time.
func TestDaemonsThatMustBeReplacedDoNotWaitForEachOther(t *testing.T) {
	f := fixture.NewSizedFleet(t, 2)
	f.Edit(fixture.App{Image: "v1", CPU: "100m", Env: "a"})
	f.Seen.Pods[1].Labels[inplace.LabelRevisionHash] = "2"
	f.Small("150m", "n1")
	f.Edit(fixture.App{Image: "v1", CPU: "200m"})
	f.Rest()
	f.MayDelete(map[string]bool{"p1": true, "p2": true})
}
