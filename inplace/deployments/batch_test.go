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
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// twoOfFour is a Deployment of 4 pods of which 2 may be unavailable: p and q have the update revision, r and s the old one. Its status is
// up to date.
func twoOfFour(p, q, r, s func(*corev1.Pod)) *deployments.Rollout {
	rollout := fixture.New(4, fixture.App{Image: "v2"})
	two := intstr.FromInt32(2)
	rollout.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = &two
	oldRS, newRS := fixture.ReplicaSetOf(rollout, "a", fixture.App{Image: "v1"}, 2), fixture.ReplicaSetOf(rollout, "b",
		fixture.App{Image: "v2"}, 2)
	for i, change := range []func(*corev1.Pod){p, q, r, s} {
		rs := []*apps.ReplicaSet{newRS, newRS, oldRS, oldRS}[i]
		rs.Labels[inplace.LabelUpdating] = fixture.Begun
		pod := fixture.PodOf(rollout, string("pqrs"[i]), rs, change)
		if apps.IsTrue(pod, corev1.PodReady) {
			rs.Status.ReadyReplicas++
			rs.Status.AvailableReplicas++
		}
	}
	rollout.Deployment.Status = deployments.StatusFormula{Deployment: rollout.Deployment, Sets: rollout.ReplicaSets, New: newRS,
		Now: fixture.Start}.NativeStatus()
	deployments.RemoveCondition(&rollout.Deployment.Status, appsv1.DeploymentProgressing)
	deployments.SetCondition(&rollout.Deployment.Status, deployments.NewCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue,
		deployments.ReasonUpdated, "", fixture.Start))
	rollout.Seen.Batches = steps.Batches{}
	return rollout
}

// provedIn makes the pod one that was restarted, and is Ready although its startup probe may revoke that for so long.
func provedIn(left time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		fixture.Probed(&corev1.Probe{PeriodSeconds: 10}, nil, 0)(pod)
		pod.Status.ContainerStatuses[0].State = fixture.RunningSince(fixture.Start.Add(left - 15*time.Second))
	}
}

// TestBatches: a step waits for steps of its kind that follow within a batch window, and no longer.
func TestBatches(t *testing.T) {
	waited := func(what steps.Deferral, ago time.Duration) func(*deployments.Rollout) {
		return func(r *deployments.Rollout) { r.Seen.Batches = steps.Batches{what: fixture.Start.Add(-ago)} }
	}
	drains := func(s podstate.Endpoint) func(*deployments.Rollout) {
		return func(r *deployments.Rollout) {
			r.Seen.Settings.Drain = 2 * time.Second
			r.Seen.Endpoints = podstate.Endpoints{"r": {NoClientSent: true}, "s": s}
		}
	}
	out := func(since time.Duration) func(*deployments.Rollout) {
		return drains(podstate.Endpoint{OutSince: fixture.Start.Add(-since)})
	}
	offered := drains(podstate.Endpoint{Listed: true})
	cases := map[string]struct {
		rollout *deployments.Rollout
		change  []func(*deployments.Rollout)
		steps   string
		putOff  string
	}{
		"no pod becomes ready":          {twoOfFour(nil, fixture.Unready, nil, nil), nil, "out r", ""},
		"one becomes ready in a moment": {twoOfFour(nil, provedIn(steps.BatchWindow), nil, nil), nil, "", "start"},
		"one becomes ready later":       {twoOfFour(nil, provedIn(time.Second), nil, nil), nil, "out r", ""},
		"the batch window is over": {twoOfFour(nil, provedIn(steps.BatchWindow), nil, nil),
			[]func(*deployments.Rollout){waited(steps.DeferStart, steps.BatchWindow)}, "out r", ""},
		"the caller puts nothing off": {twoOfFour(nil, provedIn(steps.BatchWindow), nil, nil),
			[]func(*deployments.Rollout){func(r *deployments.Rollout) { r.Seen.Batches = nil }}, "out r", ""},
		"both are drained":           {twoOfFour(nil, nil, fixture.Out, fixture.Out), nil, "2 → 0", ""},
		"the other is still offered": {twoOfFour(nil, nil, fixture.Out, fixture.Out), []func(*deployments.Rollout){offered}, "", "move"},
		"the other is nearly drained": {twoOfFour(nil, nil, fixture.Out, fixture.Out),
			[]func(*deployments.Rollout){out(2*time.Second - steps.BatchWindow)}, "", "move"},
		"the other's drain has just begun": {twoOfFour(nil, nil, fixture.Out, fixture.Out),
			[]func(*deployments.Rollout){out(time.Second)}, "2 → 1", ""},
		"it has waited a batch window": {twoOfFour(nil, nil, fixture.Out, fixture.Out),
			[]func(*deployments.Rollout){offered, waited(steps.DeferMove, steps.BatchWindow)}, "2 → 1", ""},
		"one became ready": {twoOfFour(nil, nil, fixture.Out, fixture.Out), []func(*deployments.Rollout){countReady(1)},
			"2 → 0", "status"},
		"one became ready long ago": {twoOfFour(nil, nil, fixture.Out, fixture.Out),
			[]func(*deployments.Rollout){countReady(1), waited(steps.DeferStatus, time.Second)}, "status, 2 → 0", ""},
		"one became ready, not long ago": {twoOfFour(nil, nil, fixture.Out, fixture.Out),
			[]func(*deployments.Rollout){countReady(1), waited(steps.DeferStatus, 900*time.Millisecond)}, "2 → 0", "status"},
		"the edit is not observed yet": {twoOfFour(nil, fixture.Unready, fixture.Out, fixture.Out),
			[]func(*deployments.Rollout){editedAnew},
			"status, 2 → 0", ""},
		"too few are available": {twoOfFour(nil, nil, fixture.Out, fixture.Out), []func(*deployments.Rollout){countReady(-2)},
			"status, 2 → 0", ""},
		"too few, while one moves": {twoOfFour(nil, nil, fixture.Out, fixture.Out),
			[]func(*deployments.Rollout){countReady(-2), uncounted},
			"2 → 0", "status"},
		"too few, and one moves on": {twoOfFour(nil, nil, fixture.Out, fixture.Out),
			[]func(*deployments.Rollout){countReady(-2), uncounted,
				waited(steps.DeferStatus, steps.BatchWindow)}, "status, 2 → 0", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {

			for _, change := range c.change {
				change(c.rollout)
			}
			plan := c.rollout.Plan()
			if planned := fixture.Brief(plan.Steps); planned != c.steps {
				t.Errorf("steps are %q, not %q", planned, c.steps)
			}
			if putOff := strings.Join(stringsOf(plan.Deferred), ", "); putOff != c.putOff {
				t.Errorf("put off is %q, not %q", putOff, c.putOff)
			}
			if c.putOff != "" && (plan.After == 0 || plan.After > time.Second) {
				t.Errorf("what was put off is looked at again after %s", plan.After)
			}
		})
	}
}

// countReady adds to the ready replicas in the status of the update revision.
func countReady(more int32) func(*deployments.Rollout) {
	return func(r *deployments.Rollout) {
		for _, rs := range r.ReplicaSets {
			rs.Status.ReadyReplicas = max(0, rs.Status.ReadyReplicas+more)
			rs.Status.AvailableReplicas = max(0, rs.Status.AvailableReplicas+more)
		}
	}
}

func editedAnew(r *deployments.Rollout) { r.Deployment.Generation++ }

func uncounted(r *deployments.Rollout) { r.ReplicaSets[1].Status.Replicas-- }

func stringsOf(all []steps.Deferral) []string {
	var texts []string
	for _, each := range all {
		texts = append(texts, string(each))
	}
	return texts
}
