package deployments_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

// limited is a Deployment of 4 of which 2 may be unavailable, in the middle of an update: p and q have the update revision, r and s the old
// one. So many pods of all workloads may restart at a time, and one of another workload does.
func limited(most int, changes ...func(*deployments.Rollout)) *deployments.Rollout {
	rollout := twoOfFour(nil, nil, nil, nil)
	for _, change := range changes {
		change(rollout)
	}
	return share(rollout, most)
}

// share has so many pods of all workloads restart at most, of which one does.
func share(rollout *deployments.Rollout, most int) *deployments.Rollout {
	limits := concurrency.Limits{{Flag: concurrency.FlagTotal, Most: most}}
	rollout.Seen.Share, rollout.Seen.Batches = limits.Share(concurrency.Pod{UID: "other"}), nil
	return rollout
}

// TestLimitsAreKept: a pod that serves is taken out of service only if the limit allows it, and the plan says so.
func TestLimitsAreKept(t *testing.T) {
	for name, test := range map[string]struct {
		rollout *deployments.Rollout
		steps   string
		phase   steps.Phase
		waiting int
	}{
		"two more may":         {limited(3), "out r, out s", steps.PhaseUpdating, 0},
		"one more may":         {limited(2), "out r", steps.PhaseUpdating, 1},
		"none may":             {limited(1), "", steps.PhaseLimit, 2},
		"one does not serve":   {limited(1, pod(2, fixture.Unready)), "out r", steps.PhaseUpdating, 1},
		"a budget comes first": {limited(2, budgeted), "", steps.PhaseBudget, 0},
	} {
		plan := test.rollout.Plan()
		waiting := len(plan.WaitsFor(steps.FilterLimit))
		if planned := fixture.Brief(plan.Steps); planned != test.steps || plan.Phase != test.phase || waiting != test.waiting {
			t.Errorf("%s: %s %q, %d pods wait, steps %q", name, plan.Phase, plan.Message, waiting, planned)
		}
		says := strings.Contains(plan.Message, "waiting for other pods: as many restart as --max-restarting-pods allows")
		if says != (test.waiting > 0) {
			t.Errorf("%s: it says %q", name, plan.Message)
		}
	}
}

// TestRequestsKeepLimits: a pod whose annotation asks for a restart waits for the limit, too. As many wait as maxUnavailable lets restart.
func TestRequestsKeepLimits(t *testing.T) {
	for most, test := range map[int]struct {
		steps   string
		waiting int
	}{1: {"", 2}, 2: {"out p", 1}, 3: {"out p, out q", 0}} {
		rollout := fixture.New(4, fixture.App{Image: "v1"})
		rollout.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(2))
		rs := fixture.ReplicaSetOf(rollout, "a", fixture.App{Image: "v1"}, 4)
		for _, name := range []string{"p", "q", "r", "s"} {
			fixture.PodOf(rollout, name, rs, func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{inplace.AnnotationRestartContainers: "app",
					inplace.AnnotationRestarts: inplace.FormatTime(fixture.Start.Add(-3*time.Second)) + "-a"}
			})
		}
		plan := share(rollout, most).Plan()
		if planned := fixture.Brief(plan.Steps); planned != test.steps || len(plan.WaitsFor(steps.FilterLimit)) != test.waiting {
			t.Errorf("%d may restart: %d pods wait, steps %q", most, len(plan.WaitsFor(steps.FilterLimit)), planned)
		}
	}
}

func budgeted(r *deployments.Rollout) { r.Seen.Disruption = fixture.Protected(4, 4, r.Seen.Pods) }

// TestTheDeadlineWaitsForOthers: as long as no pod is in progress because others come first, the progress deadline is renewed, long before
// it has passed. If one of its own pods does not come back, it is not.
func TestTheDeadlineWaitsForOthers(t *testing.T) {
	for name, test := range map[string]struct {
		rollout *deployments.Rollout
		after   time.Duration
		want    string
	}{
		"waits":              {limited(1), 301 * time.Second, deployments.ReasonUpdated},
		"a pod is not Ready": {limited(1, pod(1, fixture.Unready)), 601 * time.Second, deployments.ReasonTimedOut},
		"without a limit":    {twoOfFour(nil, fixture.Unready, nil, nil), 601 * time.Second, deployments.ReasonTimedOut},
	} {
		r := test.rollout
		deployments.RemoveCondition(&r.Deployment.Status, "Progressing")
		deployments.SetCondition(&r.Deployment.Status, deployments.NewCondition("Progressing", corev1.ConditionTrue, deployments.ReasonUpdated,
			"it progresses", r.Seen.Now))
		r.Seen.Now, r.Seen.Batches = r.Seen.Now.Add(test.after), nil
		got := apps.DeploymentCondition(written(r.Plan()), "Progressing")
		if got == nil || got.Reason != test.want || !got.LastUpdateTime.Time.Equal(r.Seen.Now) {
			t.Errorf("%s: the condition is %+v, want %s at %s", name, got, test.want, r.Seen.Now)
		}
	}
}

// written returns the status that the plan writes.
func written(plan steps.Plan) appsv1.DeploymentStatus {
	for _, step := range plan.Steps {
		if status, is := step.(steps.PatchStatus); is {
			return status.Status
		}
	}
	return appsv1.DeploymentStatus{}
}
