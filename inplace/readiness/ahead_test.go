package readiness_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

func TestReadyCountsWhenItLasts(t *testing.T) {
	readyAfter := func(up time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			fixture.Probed(&corev1.Probe{PeriodSeconds: 10}, &corev1.Probe{}, 0)(pod)
			apps.Condition(pod, corev1.ContainersReady).LastTransitionTime = metav1.NewTime(fixture.Start.Add(-2 * time.Second))
			pod.Status.ContainerStatuses[0].State = fixture.RunningSince(fixture.Start.Add(-2*time.Second - up))
		}
	}
	none := func(*corev1.Pod) {}
	saidSince := func(at time.Time) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			fixture.AheadSince(at)(pod)
			apps.Condition(pod, corev1.PodReady).Message = ""
		}
	}
	unprobed := func(pod *corev1.Pod) {
		fixture.AheadSince(fixture.Start)(pod)
		pod.Spec.Containers[0].ReadinessProbe = nil
	}
	probedSidecar := func(pod *corev1.Pod) {
		unprobed(pod)
		pod.Spec.InitContainers = []corev1.Container{{Name: "mesh", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
			ReadinessProbe: &corev1.Probe{}}}
	}
	cases := map[string]struct {
		change func(*corev1.Pod)
		seen   time.Duration // how long ago; 0: the pod was not seen to become Ready
		want   bool
		wait   time.Duration
	}{
		"its kubelet says so":            {none, 0, true, 0},
		"its kubelet says so just now":   {saidSince(fixture.Start), time.Millisecond, false, readiness.Lasts - time.Millisecond},
		"its kubelet says so, not seen":  {saidSince(fixture.Start), 0, true, 0},
		"its kubelet said so, seen":      {saidSince(fixture.Start), readiness.Lasts, true, 0},
		"its kubelet said so long ago":   {saidSince(fixture.Start.Add(-readiness.LastsUnconfirmed)), 0, true, 0},
		"seen just now":                  {fixture.AheadSince(fixture.Start), time.Millisecond, false, readiness.Lasts - time.Millisecond},
		"seen long enough":               {fixture.AheadSince(fixture.Start), readiness.Lasts, true, 0},
		"not seen to come":               {fixture.AheadSince(fixture.Start), 0, false, time.Second + readiness.Lasts},
		"not seen to come, but long ago": {fixture.AheadSince(fixture.Start.Add(-time.Second - readiness.Lasts)), 0, true, 0},
		"its kubelet's clock is behind": {fixture.AheadSince(fixture.Start.Add(-time.Minute)), time.Millisecond, false,
			readiness.Lasts - time.Millisecond},
		"no probe":                           {unprobed, 0, true, 0},
		"a sidecar has a probe":              {probedSidecar, 0, false, time.Second + readiness.Lasts},
		"its startup probe may not have run": {readyAfter(time.Second), 0, false, 12 * time.Second},
		"its startup probe has run":          {readyAfter(time.Minute), 0, true, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), c.change)
			seen := readiness.Ahead{}
			if c.seen > 0 {
				seen[pod.UID] = fixture.Start.Add(-c.seen)
			}
			lasts := readiness.Wait{Ahead: readiness.Lasts, Said: readiness.Lasts}
			if got, wait := seen.Lasting(pod, lasts, fixture.Start); got != c.want || wait != c.wait {
				t.Errorf("lasting is %t, to be looked at again in %s; want %t, %s", got, wait, c.want, c.wait)
			}
		})
	}
}

// TestReadyLastsLongerWhereWritesAreSlow: a kubelet revokes it by a write, which takes as long as others.
func TestReadyLastsLongerWhereWritesAreSlow(t *testing.T) {
	for write, want := range map[time.Duration]time.Duration{
		0:                      readiness.Lasts,
		10 * time.Millisecond:  readiness.Lasts,
		100 * time.Millisecond: 500 * time.Millisecond,
		time.Minute:            readiness.LastsUnconfirmed,
	} {
		if lasts := readiness.LastsWhere(write); lasts != want {
			t.Errorf("where a write takes %s it must last %s, want %s", write, lasts, want)
		}
	}
}

// TestNextTurnWaitsForReadyToLast has three pods of which one may be unavailable. One of them has just become Ready again.
func TestNextTurnWaitsForReadyToLast(t *testing.T) {
	for _, test := range []struct {
		seen, writeTakes time.Duration
		closes           int
	}{
		{seen: time.Millisecond},
		{seen: readiness.Lasts, closes: 1},
		{seen: readiness.Lasts, writeTakes: 200 * time.Millisecond},
		{seen: time.Second, writeTakes: 200 * time.Millisecond, closes: 1},
	} {
		f := fixture.NewFleet(t, 3)
		f.Seen.WriteTakes = test.writeTakes
		f.Edit(fixture.App{Image: "v2"})
		f.Once()
		back := f.Seen.Pods[0]
		back.Spec.Containers[0].Image = "v2"
		back.Labels[inplace.LabelRevisionHash] = f.UpdateRevision().Labels[inplace.LabelRevisionHash]
		fixture.ConditionIs(inplace.ConditionServing, corev1.ConditionTrue)(back)
		fixture.AheadSince(f.Seen.Now)(back)
		f.Seen.Ahead = readiness.Ahead{back.UID: f.Seen.Now.Add(-test.seen)}
		got := 0
		for _, step := range f.Plan().Steps {
			if steps.Closes(step) {
				got++
			}
		}
		if got != test.closes {
			t.Errorf("seen for %s, a write takes %s: %d gates close, want %d", test.seen, test.writeTakes, got, test.closes)
		}
	}
}

// TestUpdateEndsOnceStartupProbesHaveHadTheirTurn has all pods moved and counted. Without this wait the marks would be removed, and the
// update would end, on the report of a kubelet that has not run the last pod's startup probe yet.
func TestUpdateEndsOnceStartupProbesHaveHadTheirTurn(t *testing.T) {
	every10s := &corev1.Probe{PeriodSeconds: 10}
	startedAgo := func(startup, ready *corev1.Probe, ago time.Duration) func(*deployments.Rollout, *corev1.Pod) {
		return func(_ *deployments.Rollout, pod *corev1.Pod) {
			fixture.Probed(startup, ready, 0)(pod)
			pod.Status.ContainerStatuses[0].State = fixture.RunningSince(fixture.Start.Add(-ago))
			apps.Condition(pod, corev1.ContainersReady).LastTransitionTime = metav1.NewTime(fixture.Start.Add(-ago))
		}
	}
	stops := func(r *deployments.Rollout, pod *corev1.Pod) {
		startedAgo(every10s, every10s, time.Hour)(r, pod)
		pod.Status.ContainerStatuses[0].ContainerID = "old"
	}
	cases := map[string]struct {
		change func(*deployments.Rollout, *corev1.Pod)
		ends   bool
		wait   time.Duration // at most; 0: any
	}{
		"no startup probe":                   {startedAgo(nil, every10s, time.Second), true, 0},
		"its probe has not run":              {startedAgo(every10s, every10s, time.Second), false, 14 * time.Second},
		"it has not run, no readiness probe": {startedAgo(every10s, nil, time.Second), false, 14 * time.Second},
		"its probe has run":                  {startedAgo(every10s, every10s, 15*time.Second), true, 0},
		"the old container stops":            {stops, false, 0},
		"it never starts": {func(r *deployments.Rollout, pod *corev1.Pod) {
			stops(r, pod)
			r.Deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Reason: deployments.ReasonTimedOut}}
		}, true, 0},
		"on a node that does not answer": {func(r *deployments.Rollout, pod *corev1.Pod) {
			stops(r, pod)
			pod.Spec.NodeName = "n1"
			r.Seen.Nodes = []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}}}}
		}, true, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(2, fixture.App{Image: "v2"})
			fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 0).Labels[inplace.LabelUpdating] = fixture.Begun
			newRS := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 2)
			newRS.Labels[inplace.LabelUpdating] = fixture.Begun
			fixture.PodOf(r, "p", newRS)
			last := fixture.PodOf(r, "q", newRS)
			last.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "b", Generation: 1,
				Containers: map[string]readiness.MovedContainer{
					"app": {Image: "v2", ImageID: "sha256:v1", ContainerID: "old"}}}.String()}
			c.change(r, last)
			plan := r.Plan()
			unmarks := slices.ContainsFunc(plan.Steps, func(step steps.Step) bool { return strings.Contains(step.Describe(), "marks") })
			if unmarks != c.ends {
				t.Errorf("it ends: %t, want %t; %s: %s, %v", unmarks, c.ends, plan.Phase, plan.Message, plan.Steps)
			}
			if c.wait > 0 && (plan.After == 0 || plan.After > c.wait) {
				t.Errorf("looks again after %s, want %s", plan.After, c.wait)
			}
		})
	}
}

func TestAheadForgetsOtherPods(t *testing.T) {
	r := fixture.New(2, fixture.App{Image: "v1"})
	rs := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2)
	fixture.PodOf(r, "said", rs)
	fixture.PodOf(r, "first", rs, fixture.AheadSince(fixture.Start))
	fixture.PodOf(r, "known", rs, fixture.AheadSince(fixture.Start))
	before := fixture.Start.Add(-time.Minute)
	got := readiness.Ahead{"said": before, "known": before, "gone": before}.Next(r.Seen.Pods, fixture.Start)
	for uid, want := range map[types.UID]time.Time{"first": fixture.Start, "known": before} {
		if !got[uid].Equal(want) {
			t.Errorf("%s is seen since %s, want %s", uid, got[uid], want)
		}
	}
	if len(got) != 2 {
		t.Errorf("seen are %v", got)
	}
}
