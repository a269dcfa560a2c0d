package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// cpus returns the CPU requests of all pods, lowest first.
func (s *lockstep) cpus() string {
	var all []string
	for _, pod := range sorted(s.pods.objects) {
		all = append(all, pod.Spec.Containers[0].Resources.Requests.Cpu().String())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func newSizedAt(t *testing.T, replicas int32, partition string) *lockstep {
	return newLockstep(t, replicas, func(d *apps.Deployment) {
		partitioned(partition)(d)
		d.Spec.Template = fixture.App{Image: "v1", CPU: "100m"}.Template()
	})
}

// TestStepsOfResourcesAtAPartition: a pod that is only resized counts as any other. A pod at the partition keeps its CPU.
func TestStepsOfResourcesAtAPartition(t *testing.T) {
	s := newSizedAt(t, 3, "50%")
	before := sorted(s.pods.objects)
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.rest()
	s.expect("A marks", "B marks", "patch 1", "resize 1", "A 3 → 2", "move 1", "B 0 → 1")
	s.waits("waiting at partition 50%: 1 of 3 pods updated")
	if got := s.cpus(); got != "100m 100m 200m" {
		t.Errorf("the pods have %s", got)
	}
	s.partition("1")
	s.rest()
	s.waits("waiting at partition 1: 2 of 3 pods updated")
	s.edits(fixture.App{Image: "v1", CPU: "100m"})
	s.rest()
	s.intact(before)
	if got := s.cpus(); got != "100m 100m 100m" {
		t.Errorf("after the undo the pods have %s", got)
	}
	s.checkEnd()
}

// TestResourcesOfManyAtAPartition: if several pods may be unavailable at a time, no more begin than the partition budget, whether they
// serve or not.
func TestResourcesOfManyAtAPartition(t *testing.T) {
	s := newLockstep(t, 5, func(d *apps.Deployment) {
		partitioned("3")(d)
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromInt32(5)),
			MaxSurge: new(intstr.FromInt32(0))}
		d.Spec.Template = fixture.App{Image: "v1", CPU: "100m"}.Template()
	})
	s.kubelet.short = true
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.rest()
	s.expect("A marks", "B marks", "patch 1", "patch 2", "resize 1", "resize 2")
	s.kubelet.short = false
	s.rest()
	s.waits("waiting at partition 3: 2 of 5 pods updated")
}

// TestRaisedPartitionMidUpdateToASize: a pod whose update has begun goes on, or back, after the partition is raised. No other pod begins.
func TestRaisedPartitionMidUpdateToASize(t *testing.T) {
	for cpu, want := range map[string]string{"200m": "100m 100m 200m", "100m": "100m 100m 100m", "300m": "100m 100m 300m"} {
		s := newSizedAt(t, 3, "1")
		s.kubelet.short = true
		s.edits(fixture.App{Image: "v1", CPU: "200m"})
		s.until(func() bool { return slices.Contains(s.steps, "resize 1") })
		s.partition("100%")
		s.edits(fixture.App{Image: "v1", CPU: cpu})
		s.kubelet.short = false
		s.rest()
		if got := s.cpus(); got != want || s.failed != "" {
			t.Errorf("%s: the pods have %s: %q %s", cpu, got, s.steps, s.failed)
		}
	}
}

// TestResourcesAndAnImageAtAPartition: a pod that gets a new image and a resize counts once in the partition budget.
func TestResourcesAndAnImageAtAPartition(t *testing.T) {
	s := newSizedAt(t, 3, "1")
	s.edits(fixture.App{Image: "v2", CPU: "200m"})
	s.rest()
	s.has(map[string]int{"A": 1, "B": 2})
	s.waits("waiting at partition 1: 2 of 3 pods updated")
	if got := s.cpus(); got != "100m 200m 200m" {
		t.Errorf("the pods have %s", got)
	}
}

// TestDeferredResourcesAtAPartition: an update waits at its partition without a deadline. It does have a deadline for a resize before it
// reaches the partition.
func TestDeferredResourcesAtAPartition(t *testing.T) {
	s := newSizedAt(t, 3, "1")
	s.kubelet.short = true
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.rest()
	if plan := s.rollout().Plan(); plan.Phase == steps.PhasePartition {
		t.Errorf("it says %q while a pod is being resized", plan.Message)
	}
	s.kubelet.short = false
	s.rest()
	s.pass(30 * time.Minute)
	s.waits("waiting at partition 1: 2 of 3 pods updated")
}

func TestDaemonResourcesOfManyAtAPartition(t *testing.T) {
	f := fixture.NewSizedFleet(t, 4).AtPartition("2")
	all := intstr.FromInt32(4)
	f.DaemonSet.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &all}
	f.Edit(fixture.App{Image: "v1", CPU: "200m"})
	f.Rest()
	if plan := f.Plan(); plan.Message != "waiting at partition 2: 2 of 4 pods updated" {
		t.Errorf("the plan is %s %q after %q", plan.Phase, plan.Message, f.Steps)
	}
}

func TestDaemonStepsOfResourcesAtAPartition(t *testing.T) {
	f := fixture.NewSizedFleet(t, 3).AtPartition("50%")
	cpus := func() string {
		var all []string
		for _, pod := range f.Seen.Pods {
			all = append(all, pod.Labels[inplace.LabelRevisionHash]+":"+pod.Spec.Containers[0].Resources.Requests.Cpu().String())
		}
		return strings.Join(all, " ")
	}
	f.Edit(fixture.App{Image: "v1", CPU: "200m"})
	f.Rest()
	f.Expect("mark 1 false false", "mark 2 true false", "p1 is updating-in-place app=v1", "p1 gets 200m", "p1 is 2 app=v1")
	if plan := f.Plan(); plan.Phase != steps.PhasePartition || plan.Message != "waiting at partition 50%: 1 of 3 pods updated" {
		t.Errorf("the plan is %s %q", plan.Phase, plan.Message)
	}
	f.Edit(fixture.App{Image: "v1", CPU: "100m"})
	f.Rest()
	if got := cpus(); got != "1:100m 1:100m 1:100m" {
		t.Errorf("after the undo the pods are %s", got)
	}
}

// TestStageThatDoesNotFit: pods that do not get their size keep the update from reaching its partition, and the status says so. The pods at
// the partition are not rolled out because of it.
func TestStageThatDoesNotFit(t *testing.T) {
	for name, test := range map[string]struct {
		short bool
		cpu   string
		want  string
	}{
		"no capacity for long": {short: true, cpu: "200m", want: "not within 10m0s: Deferred"},
		"infeasible":           {cpu: "9", want: "Infeasible"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSizedAt(t, 3, "1")
			before := sorted(s.pods.objects)
			s.kubelet.short = test.short
			s.edits(fixture.App{Image: "v1", CPU: test.cpu})
			s.rest()
			s.pass(30 * time.Minute)
			s.rest()
			if progressing := apps.DeploymentCondition(s.deployment().Status,
				appsv1.DeploymentProgressing); !deployments.Overdue(s.deployment()) ||
				!strings.Contains(progressing.Message, test.want) || !strings.Contains(progressing.Message, "partition 1") {
				t.Errorf("the status says %+v", progressing)
			}
			if plan := s.rollout().Plan(); plan.Phase != steps.PhaseStalled || !plan.Decision.Held || !strings.Contains(plan.Message, test.want) {
				t.Errorf("the plan is %s %q", plan.Phase, plan.Message)
			}
			s.edits(fixture.App{Image: "v1", CPU: "100m"})
			s.rest()
			s.intact(before)
			s.checkEnd()
		})
		t.Run(name+", and then the partition goes", func(t *testing.T) {
			s := newSizedAt(t, 3, "1")
			s.kubelet.short = test.short
			s.edits(fixture.App{Image: "v1", CPU: test.cpu})
			s.rest()
			s.pass(30 * time.Minute)
			made := s.made
			s.partition("")
			s.pass(30 * time.Minute)
			s.rest()
			if made != 3 || s.made != 6 || s.failed != "" {
				t.Errorf("%d pods were created, and %d once the partition was gone: %q %s", made, s.made, s.steps, s.failed)
			}
		})
	}
}

// TestMovedPodThatDoesNotFitAtAPartition: a pod has moved and its next resize is infeasible. It waits for the pods at the partition, and
// the plan says so.
func TestMovedPodThatDoesNotFitAtAPartition(t *testing.T) {
	s := newSizedAt(t, 3, "2")
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.rest()
	s.waits("waiting at partition 2: 1 of 3 pods updated")
	s.kubelet.cramped = map[string]string{}
	for _, pod := range s.rollout().Seen.Pods {
		s.kubelet.cramped[pod.Name] = "300m"
	}
	s.edits(fixture.App{Image: "v1", CPU: "300m"})
	s.rest()
	s.pass(30 * time.Minute)
	s.rest()
	if plan := s.rollout().Plan(); s.made != 3 || plan.Phase != steps.PhaseStalled || !strings.Contains(plan.Message, "Infeasible") {
		t.Errorf("%d pods were created; the plan is %s %q", s.made, plan.Phase, plan.Message)
	}
}

// TestUndoThatDoesNotFitAtAPartition: an undo that cannot resize a pod does not wait for a partition that keeps no pod.
func TestUndoThatDoesNotFitAtAPartition(t *testing.T) {
	s := newSizedAt(t, 3, "1")
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.rest()
	s.waits("waiting at partition 1: 2 of 3 pods updated")
	s.kubelet.short = true
	s.edits(fixture.App{Image: "v1", CPU: "100m"})
	s.rest()
	s.pass(30 * time.Minute)
	s.rest()
	if s.made == 3 {
		t.Errorf("no pod is replaced: %q", s.steps)
	}
}

// TestDaemonsThatDoNotFitAtAPartition: pods of a DaemonSet that do not fit are replaced, as many as the partition budget allows.
func TestDaemonsThatDoNotFitAtAPartition(t *testing.T) {
	f := fixture.NewSizedFleet(t, 3).AtPartition("1")
	f.Small("150m", "n1", "n2", "n3")
	f.Edit(fixture.App{Image: "v1", CPU: "200m"})
	f.Rest()
	if plan := f.Plan(); !plan.Decision.Held || !strings.Contains(plan.Message, "does not get its CPU and memory") {
		t.Fatalf("the plan is %s %q", plan.Phase, plan.Message)
	}
	f.MayDelete(map[string]bool{"p1": true, "p2": true})
	f.Replaced("p1")
	f.Replaced("p2")
	f.Rest()
	f.MayDelete(nil)
	if plan := f.Plan(); plan.Phase != steps.PhasePartition || plan.Message != "waiting at partition 1: 2 of 3 pods updated" {
		t.Errorf("the plan is %s %q", plan.Phase, plan.Message)
	}
	f.AtPartition("0").Rest()
	f.MayDelete(map[string]bool{"p3": true})
}

// TestPodAtThePartitionIsGoneBesideAStageThatDoesNotFit: a pod at the partition is gone. It still counts there while its replacement is
// missing.
func TestPodAtThePartitionIsGoneBesideAStageThatDoesNotFit(t *testing.T) {
	s := newSizedAt(t, 3, "1")
	s.kubelet.short = true
	s.edits(fixture.App{Image: "v1", CPU: "200m"})
	s.rest()
	s.pass(30 * time.Minute)
	for _, pod := range sorted(s.pods.objects) {
		if len(readiness.MoveOf(pod).Resize) == 0 {
			remove(s.world, s.pods, pod.Name)
		}
	}
	if plan := s.rollout().Plan(); !plan.Decision.Held {
		t.Errorf("the update falls back: %s %q", plan.Phase, plan.Message)
	}
	s.pass(time.Minute)
	s.rest()
	if plan := s.rollout().Plan(); s.made != 4 || !plan.Decision.Held {
		t.Errorf("%d pods were created: %s %q", s.made, plan.Phase, plan.Message)
	}
}

// TestPodServesWhileThereIsNoCapacity: a pod that was to restart for its size serves while its node has no capacity, even if another
// container is to restart, too.
func TestPodServesWhileThereIsNoCapacity(t *testing.T) {
	before, after := fixture.App{Image: "v1", Sidecar: "s1", CPU: "100m", Renews: true}, fixture.App{Image: "v1", Sidecar: "s2", CPU: "200m",
		Renews: true}
	s := newLockstep(t, 3, func(d *apps.Deployment) {
		partitioned("1")(d)
		d.Spec.Template = before.Template()
	})
	s.kubelet.short = true
	s.edits(after)
	s.rest()
	if slices.ContainsFunc(s.rollout().Seen.Pods, readiness.Out) || !slices.Contains(s.steps, "out 1") {
		t.Errorf("a pod is out of service, or none was: %q", s.steps)
	}
	s.kubelet.short = false
	s.rest()
	s.waits("waiting at partition 1: 2 of 3 pods updated")
}

func TestDaemonServesWhileThereIsNoCapacity(t *testing.T) {
	f := fixture.NewFleetOf(t, 2, fixture.App{Image: "v1", Sidecar: "s1", CPU: "100m", Renews: true}).AtPartition("1")
	f.Short = true
	f.Edit(fixture.App{Image: "v1", Sidecar: "s2", CPU: "200m", Renews: true})
	f.Rest()
	if slices.ContainsFunc(f.Seen.Pods, readiness.Out) || !slices.Contains(f.Steps, "out p1") {
		t.Errorf("a pod is out of service, or none was: %q", f.Steps)
	}
}
