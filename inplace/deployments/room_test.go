package deployments_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

// surging returns an update of two pods, none of which may be unavailable, and their surge pod.
func surging(surge func(*corev1.Pod)) *deployments.Rollout {
	r := fixture.New(2, fixture.App{Image: "v2"})
	r.Seen.Settings.Surge = inplace.SurgeNeeded
	mayBeUnavailable(r, "1%")
	a, b := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
	a.Labels[inplace.LabelUpdating], b.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
	b.Labels[inplace.LabelSurgeReplicas] = "1"
	fixture.PodOf(r, "p", a)
	fixture.PodOf(r, "q", a)
	fixture.PodOf(r, "surge", b, surge).Annotations = map[string]string{inplace.AnnotationSurgePod: "true"}
	return r
}

// mayBeUnavailable sets how many pods may be unavailable. A percentage that rounds to 0 is not as strict as 0 itself.
func mayBeUnavailable(r *deployments.Rollout, value string) {
	r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.Parse(value))
}

// unscheduled makes the pod one that has had no node for that long, and for that reason.
func unscheduled(reason string, since time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		fixture.Unready(pod)
		fixture.ConditionIs(corev1.PodScheduled, corev1.ConditionFalse)(pod)
		scheduled := apps.Condition(pod, corev1.PodScheduled)
		scheduled.Reason, scheduled.Message, scheduled.LastTransitionTime = reason, "no", metav1.NewTime(fixture.Start.Add(-since))
		pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
	}
}

// TestItGoesOnWithoutSurgePods: the surge pod has no node. Once it is clear that the scheduler finds none, pods restart without surge pods,
// and users are told. They are not where the surge pod goes for another reason, or may come after all.
func TestItGoesOnWithoutSurgePods(t *testing.T) {
	long := unscheduled(corev1.PodReasonUnschedulable, deployments.UnplaceableAfter)
	for name, test := range map[string]struct {
		surge  func(*corev1.Pod)
		change func(*deployments.Rollout)
		want   bool
	}{
		"no node has room for it":             {long, nil, true},
		"the scheduler may still find one":    {unscheduled(corev1.PodReasonUnschedulable, deployments.UnplaceableAfter-time.Second), nil, false},
		"the scheduler has yet to look":       {func(pod *corev1.Pod) { long(pod); pod.Status.Conditions = nil }, nil, false},
		"another controller has it wait":      {unscheduled(corev1.PodReasonSchedulingGated, time.Hour), nil, false},
		"the user wants none unavailable":     {long, func(r *deployments.Rollout) { mayBeUnavailable(r, "0") }, false},
		"the user wants no surge pods":        {long, func(r *deployments.Rollout) { r.Seen.Settings.Surge = inplace.SurgeNever }, false},
		"there is nothing left to be updated": {long, allUpdated, false},
	} {
		r := surging(test.surge)
		if test.change != nil {
			test.change(r)
		}
		plan := r.Plan()
		if without := strings.HasSuffix(plan.Message, "the update goes on without them"); without != test.want {
			t.Errorf("%s: it says %s %q", name, plan.Phase, plan.Message)
		}
		if test.want != (plan.Phase == steps.PhaseStalled) {
			t.Errorf("%s: the phase is %s", name, plan.Phase)
		}
	}
}

// allUpdated has all pods have the update revision.
func allUpdated(r *deployments.Rollout) {
	a, b := r.ReplicaSets[0], r.ReplicaSets[1]
	a.Spec.Replicas, a.Status.Replicas, b.Spec.Replicas, b.Status.Replicas = new(int32), 0, new(int32(3)), 3
	surge := podNamed(r.Seen.Pods, "surge")
	r.Seen.Pods = []*corev1.Pod{surge}
	fixture.PodOf(r, "p", b)
	fixture.PodOf(r, "q", b)
}
