package deployments_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

// statusOf returns the status that the plan writes, nil if none, and when it looks again.
func statusOf(r *deployments.Rollout) (*appsv1.DeploymentStatus, time.Duration) {
	plan := r.Plan()
	for _, step := range plan.Steps {
		if patch, ok := step.(steps.PatchStatus); ok {
			return &patch.Status, plan.After
		}
	}
	return nil, plan.After
}

func TestStatusIsWrittenOnlyWhenItChanges(t *testing.T) {
	r := fixture.Updating()
	r.Deployment.Status.Conditions[0].LastUpdateTime = metav1.NewTime(fixture.Start.Add(-570 * time.Second))
	if status, after := statusOf(r); status != nil || after != 31*time.Second {
		t.Errorf("the status is %+v, to be looked at again after %s, when the deadline has passed", status, after)
	}
}

func TestStatusCounts(t *testing.T) {
	r := fixture.Updating()
	r.Deployment.Generation = 7
	newRS := r.ReplicaSets[1]
	newRS.Status.Replicas, newRS.Status.ReadyReplicas, newRS.Status.AvailableReplicas = 3, 1, 0
	newRS.Status.TerminatingReplicas, r.ReplicaSets[0].Status.TerminatingReplicas = new(int32(1)), new(int32(2))
	status, _ := statusOf(r)
	if status == nil {
		t.Fatal("no status")
	}
	status.Conditions = nil
	want := appsv1.DeploymentStatus{ObservedGeneration: 7, Replicas: 5, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 2,
		UnavailableReplicas: 2, TerminatingReplicas: status.TerminatingReplicas}
	if *status.TerminatingReplicas != 3 || len(deployments.StatusOperations(*status, want)) > 0 {
		t.Errorf("the status is %+v, not %+v", status, want)
	}
}

func TestTerminatingIsLeftOutWhereItIsUnknown(t *testing.T) {
	r := fixture.Updating()
	r.ReplicaSets[0].Status.TerminatingReplicas = new(int32(2))
	if terminating := (deployments.StatusFormula{Deployment: r.Deployment, Sets: r.ReplicaSets}).Terminating(); terminating != nil {
		t.Errorf("%d are terminating, although one ReplicaSet does not say", *terminating)
	}
	r.ReplicaSets[1].Status.ObservedGeneration = 0
	if terminating := (deployments.StatusFormula{Deployment: r.Deployment, Sets: r.ReplicaSets}).Terminating(); terminating == nil ||
		*terminating != 2 {
		t.Errorf("%v are terminating, although the other ReplicaSet was never synced", terminating)
	}
	r.ReplicaSets = r.ReplicaSets[1:]
	for before, want := range map[*int32]bool{nil: false, new(int32(2)): true} {
		r.Deployment.Status.TerminatingReplicas = before
		if got := (deployments.StatusFormula{Deployment: r.Deployment, Sets: r.ReplicaSets}).Terminating(); (got != nil) != want {
			t.Errorf("none is known to be terminating, and the status has the number: %t, but it gets it: %t", want, got != nil)
		}
	}
}

func TestStatusConditions(t *testing.T) {
	progressing := func(r *deployments.Rollout) *appsv1.DeploymentCondition { return &r.Deployment.Status.Conditions[0] }
	fewer := func(r *deployments.Rollout) { r.ReplicaSets[0].Status.AvailableReplicas = 0 }
	cases := map[string]struct {
		change    func(*deployments.Rollout)
		condition appsv1.DeploymentConditionType
		status    corev1.ConditionStatus
		reason    string
		updated   time.Time
	}{
		"progress moves the time": {func(r *deployments.Rollout) { r.Deployment.Status.UpdatedReplicas = 1 },
			appsv1.DeploymentProgressing, corev1.ConditionTrue, deployments.ReasonUpdated, fixture.Start},
		"so does a pod that is ready": {func(r *deployments.Rollout) { r.Deployment.Status.ReadyReplicas = 3 },
			appsv1.DeploymentProgressing, corev1.ConditionTrue, deployments.ReasonUpdated, fixture.Start},
		"so does one that is available": {func(r *deployments.Rollout) { r.Deployment.Status.AvailableReplicas = 3 },
			appsv1.DeploymentProgressing, corev1.ConditionTrue, deployments.ReasonUpdated, fixture.Start},
		"so does an old pod that is gone": {func(r *deployments.Rollout) { r.Deployment.Status.Replicas = 5 },
			appsv1.DeploymentProgressing, corev1.ConditionTrue, deployments.ReasonUpdated, fixture.Start},
		"so does one that is updated beside it": {func(r *deployments.Rollout) {
			r.Deployment.Status.Replicas, r.Deployment.Status.UpdatedReplicas = 3, 1
		}, appsv1.DeploymentProgressing, corev1.ConditionTrue, deployments.ReasonUpdated, fixture.Start},
		"a step back does not": {fewer, appsv1.DeploymentProgressing, corev1.ConditionTrue, deployments.ReasonUpdated,
			fixture.Start.Add(-time.Minute)},
		"too few available": {fewer, appsv1.DeploymentAvailable, corev1.ConditionFalse, deployments.ReasonMinimumUnavailable, fixture.Start},
		"the deadline passed": {func(r *deployments.Rollout) {
			progressing(r).LastUpdateTime = metav1.NewTime(fixture.Start.Add(-601 * time.Second))
		},
			appsv1.DeploymentProgressing, corev1.ConditionFalse, deployments.ReasonTimedOut, fixture.Start},
		"progress after the deadline": {func(r *deployments.Rollout) {
			progressing(r).Status, progressing(r).Reason = corev1.ConditionFalse, deployments.ReasonTimedOut
			r.Deployment.Status.UpdatedReplicas = 1
		}, appsv1.DeploymentProgressing, corev1.ConditionTrue, deployments.ReasonUpdated, fixture.Start},
		"the last rollout was complete: the deadline runs from now": {func(r *deployments.Rollout) {
			progressing(r).Reason, progressing(r).LastUpdateTime = deployments.ReasonComplete, metav1.NewTime(fixture.Start.Add(-time.Hour))
			fewer(r)
		}, appsv1.DeploymentProgressing, corev1.ConditionTrue, deployments.ReasonFound, fixture.Start},
		"the last rollout was complete, and so is this one": {func(r *deployments.Rollout) {
			progressing(r).Reason, progressing(r).LastUpdateTime = deployments.ReasonComplete, metav1.NewTime(fixture.Start.Add(-time.Hour))
			r.ReplicaSets[0].Spec.Replicas, r.ReplicaSets[0].Status = new(int32), appsv1.ReplicaSetStatus{ObservedGeneration: 1}
			r.ReplicaSets[1].Spec.Replicas, r.ReplicaSets[1].Status.Replicas = new(int32(4)), 4
		}, appsv1.DeploymentProgressing, corev1.ConditionTrue, deployments.ReasonComplete, fixture.Start.Add(-time.Hour)},
		"paused: nothing is estimated": {func(r *deployments.Rollout) {
			r.Deployment.Spec.Paused = true
			r.Deployment.Status.UpdatedReplicas = 1
		}, appsv1.DeploymentProgressing, corev1.ConditionTrue, deployments.ReasonUpdated, fixture.Start.Add(-time.Minute)},
		"resumed: the deadline runs from now": {func(r *deployments.Rollout) {
			*progressing(r) = deployments.NewCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, deployments.ReasonPaused,
				"Deployment is paused", fixture.Start.Add(-time.Hour))
		}, appsv1.DeploymentProgressing, corev1.ConditionUnknown, deployments.ReasonResumed, fixture.Start},
		"resumed, and a pod progresses": {func(r *deployments.Rollout) {
			*progressing(r) = deployments.NewCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, deployments.ReasonPaused,
				"Deployment is paused", fixture.Start.Add(-time.Hour))
			r.Deployment.Status.UpdatedReplicas = 1
		}, appsv1.DeploymentProgressing, corev1.ConditionTrue, deployments.ReasonUpdated, fixture.Start},
		"a ReplicaSet that fails": {func(r *deployments.Rollout) {
			r.ReplicaSets[0].Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
				Reason: "FailedCreate"}}
		}, appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate", time.Time{}},
		"no deadline": {func(r *deployments.Rollout) { r.Deployment.Spec.ProgressDeadlineSeconds = new(int32(math.MaxInt32)) },
			appsv1.DeploymentProgressing, "", "", time.Time{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fixture.Updating()
			c.change(r)
			status, _ := statusOf(r)
			if status == nil {
				t.Fatal("no status")
			}
			got := apps.DeploymentCondition(*status, c.condition)
			if got == nil {
				got = &appsv1.DeploymentCondition{}
			}
			if got.Status != c.status || got.Reason != c.reason || !got.LastUpdateTime.Time.Equal(c.updated) {
				t.Errorf("%s is %+v", c.condition, got)
			}
		})
	}
}

// TestTransitionTimes: users see since when the Deployment makes progress, or has made none.
func TestTransitionTimes(t *testing.T) {
	for before, want := range map[corev1.ConditionStatus]time.Time{
		corev1.ConditionTrue: fixture.Start.Add(-time.Minute), corev1.ConditionFalse: fixture.Start,
	} {
		r := fixture.Updating()
		r.Deployment.Status.Conditions[0].Status, r.Deployment.Status.UpdatedReplicas = before, 1
		status, _ := statusOf(r)
		c := apps.DeploymentCondition(*status, appsv1.DeploymentProgressing)
		if c.Status != corev1.ConditionTrue || !c.LastTransitionTime.Time.Equal(want) || !c.LastUpdateTime.Time.Equal(fixture.Start) {
			t.Errorf("before the pod was updated it was %s, and now it is %+v", before, c)
		}
	}
}

// TestUntilDeadline: the leader looks again when the deadline has passed, because no event says so.
func TestUntilDeadline(t *testing.T) {
	c := func(reason string) *appsv1.DeploymentCondition {
		return new(deployments.NewCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reason, "", fixture.Start.Add(-time.Minute)))
	}
	for name, test := range map[string]struct {
		condition *appsv1.DeploymentCondition
		change    func(*apps.Deployment)
		want      time.Duration
	}{
		"it runs":                  {c(deployments.ReasonUpdated), func(*apps.Deployment) {}, 541 * time.Second},
		"at a partition":           {c(deployments.ReasonPartition), func(*apps.Deployment) {}, 241 * time.Second},
		"it has passed":            {c(deployments.ReasonTimedOut), func(*apps.Deployment) {}, 0},
		"the rollout is complete":  {c(deployments.ReasonComplete), func(*apps.Deployment) {}, 0},
		"it does not run yet":      {nil, func(*apps.Deployment) {}, 0},
		"there is none":            {c(deployments.ReasonUpdated), func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = nil }, 0},
		"the user has paused them": {c(deployments.ReasonUpdated), func(d *apps.Deployment) { d.Spec.Paused = true }, 0},
	} {
		d, status := fixture.NewDeployment(4, fixture.App{Image: "v2"}), appsv1.DeploymentStatus{}
		if test.condition != nil {
			status.Conditions = append(status.Conditions, *test.condition)
		}
		test.change(d)
		if got := (deployments.StatusFormula{Deployment: d, Now: fixture.Start}).UntilDeadline(status); got != test.want {
			t.Errorf("%s: it looks again after %s, not %s", name, got, test.want)
		}
	}
}

// TestSameConditions: a status in which only counts, times and texts are others may wait a second. What users and tools act on does not.
func TestSameConditions(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *appsv1.DeploymentStatus, first, second *appsv1.DeploymentCondition)
		want   bool
	}{
		"counts": {func(s *appsv1.DeploymentStatus, _, _ *appsv1.DeploymentCondition) { s.ReadyReplicas++ }, true},
		"texts and times": {func(_ *appsv1.DeploymentStatus, first, _ *appsv1.DeploymentCondition) {
			first.Message, first.LastUpdateTime = "it goes on", metav1.NewTime(fixture.Start)
		}, true},
		"their order": {func(_ *appsv1.DeploymentStatus, first, second *appsv1.DeploymentCondition) {
			*first, *second = *second, *first
		}, true},
		"the generation": {func(s *appsv1.DeploymentStatus, _, _ *appsv1.DeploymentCondition) { s.ObservedGeneration++ }, false},
		"a status": {func(_ *appsv1.DeploymentStatus, first, _ *appsv1.DeploymentCondition) {
			first.Status = corev1.ConditionUnknown
		}, false},
		"a reason": {func(_ *appsv1.DeploymentStatus, first, _ *appsv1.DeploymentCondition) {
			first.Reason = deployments.ReasonFound
		}, false},
		"a type": {func(_ *appsv1.DeploymentStatus, first, _ *appsv1.DeploymentCondition) {
			first.Type = appsv1.DeploymentReplicaFailure
		}, false},
		"one more": {func(s *appsv1.DeploymentStatus, first, _ *appsv1.DeploymentCondition) {
			s.Conditions = append(s.Conditions, *first)
		}, false},
	} {
		was := fixture.Updating().Deployment.Status
		is := *was.DeepCopy()
		test.change(&is, &is.Conditions[0], &is.Conditions[1])
		if deployments.SameConditions(was, is) != test.want {
			t.Errorf("%s: they may wait: %t", name, !test.want)
		}
	}
}

// TestTerminatingIsWrittenWhereItIsKnown: on clusters without the field nothing is written of it, and what another controller has written
// stays.
func TestTerminatingIsWrittenWhereItIsKnown(t *testing.T) {
	for name, test := range map[string]struct {
		was, is *int32
		writes  int
	}{
		"another number":    {new(int32(1)), new(int32(2)), 1},
		"it is new":         {nil, new(int32(0)), 1},
		"the same number":   {new(int32(1)), new(int32(1)), 0},
		"it is not known":   {new(int32(1)), nil, 0},
		"there is no field": {nil, nil, 0},
	} {
		written := deployments.StatusOperations(appsv1.DeploymentStatus{TerminatingReplicas: test.was},
			appsv1.DeploymentStatus{TerminatingReplicas: test.is})
		if len(written) != test.writes {
			t.Errorf("%s: it writes %v", name, written)
		}
	}
}

// TestTimeoutSaysWhatTheUpdateWaitsFor checks it for whichever controller sees first that the deadline has passed.
func TestTimeoutSaysWhatTheUpdateWaitsFor(t *testing.T) {
	const native, completed = `ReplicaSet "b" has timed out progressing.`, `ReplicaSet "b" has timed out progressing. It is waiting for a node.`
	timedOut := func(message string) appsv1.DeploymentCondition {
		return deployments.NewCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, deployments.ReasonTimedOut, message,
			fixture.Start.Add(-time.Minute))
	}
	overdue := deployments.NewCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, deployments.ReasonUpdated, "",
		fixture.Start.Add(-time.Hour))
	for name, test := range map[string]struct {
		before  appsv1.DeploymentCondition
		waiting string
		message string
		updated time.Time
	}{
		"Stayput sees it first":                     {overdue, "waiting for a node", completed, fixture.Start},
		"Stayput sees it first, and knows no why":   {overdue, "", native, fixture.Start},
		"the native controller saw it first":        {timedOut(native), "waiting for a node", completed, fixture.Start.Add(-time.Minute)},
		"it saw it first, and Stayput knows no why": {timedOut(native), "", native, fixture.Start.Add(-time.Minute)},
		"another reason was written before":         {timedOut(completed), "waiting for a pull", completed, fixture.Start.Add(-time.Minute)},
	} {
		r := fixture.Updating()
		r.Deployment.Status.Conditions = []appsv1.DeploymentCondition{test.before}
		r.Deployment.Status.UpdatedReplicas, r.Deployment.Status.ReadyReplicas, r.Deployment.Status.AvailableReplicas = 9, 9, 9
		newRS := r.ReplicaSets[1]
		newRS.Name = "b"
		formula := deployments.StatusFormula{Deployment: r.Deployment, Sets: r.ReplicaSets, New: newRS, Waiting: test.waiting, Now: fixture.Start}
		status := formula.NativeStatus()
		got := apps.DeploymentCondition(status, appsv1.DeploymentProgressing)
		if got == nil || got.Message != test.message || !got.LastUpdateTime.Time.Equal(test.updated) {
			t.Errorf("%s: the condition is %+v", name, got)
		}
	}
}

// TestStopsWithinTheDeadline: an update ends while pods are still stopping, unless half the deadline would pass meanwhile. Stayput
// would no longer renew the condition, and the Deployment controller would report that the update has failed, although its pods only take
// long to stop. Where it reports no such thing, the update ends at once.
func TestStopsWithinTheDeadline(t *testing.T) {
	const half = 300 * time.Second
	progressing := func(reason string, ago time.Duration) func(*deployments.Rollout) {
		return func(r *deployments.Rollout) {
			r.Deployment.Status.Conditions = []appsv1.DeploymentCondition{deployments.NewCondition(appsv1.DeploymentProgressing,
				corev1.ConditionTrue, reason, "", fixture.Start.Add(-ago))}
		}
	}
	for name, test := range map[string]struct {
		change func(*deployments.Rollout)
		stops  time.Duration
		want   bool
	}{
		"none stops":            {progressing(deployments.ReasonUpdated, half), 0, false},
		"within half of it":     {progressing(deployments.ReasonUpdated, 0), half, false},
		"not within half of it": {progressing(deployments.ReasonUpdated, 0), half + time.Second, true},
		"half of it has passed": {progressing(deployments.ReasonUpdated, half), time.Second, true},
		"it runs from now":      {progressing(deployments.ReasonComplete, half), time.Second, false},
		"it has passed":         {progressing(deployments.ReasonTimedOut, 2*half), time.Second, false},
		"it does not run yet":   {func(r *deployments.Rollout) { r.Deployment.Status.Conditions = nil }, 2 * half, false},
		"there is none":         {func(r *deployments.Rollout) { r.Deployment.Spec.ProgressDeadlineSeconds = nil }, 2 * half, false},
		"the update looks complete, so the native controller reports that": {func(r *deployments.Rollout) {
			r.Deployment.Spec.Replicas, r.ReplicaSets = new(int32(2)), r.ReplicaSets[1:]
		}, 2 * half, false},
	} {
		r := fixture.Updating()
		test.change(r)
		formula := deployments.StatusFormula{Deployment: r.Deployment, Sets: r.ReplicaSets, New: r.UpdateRevision(), Now: fixture.Start}
		if formula.OutlastsDeadline(fixture.Start.Add(test.stops)) != test.want {
			t.Errorf("%s: the update goes on until they have stopped: %t", name, !test.want)
		}
	}
}

// TestWaitingAtAStageIsRenewed: the Deployment controller does not know this reason, and lets the deadline run from the condition's time.
// So the time is renewed when half of the deadline has passed.
func TestWaitingAtAStageIsRenewed(t *testing.T) {
	for ago, want := range map[time.Duration]time.Duration{299 * time.Second: 299 * time.Second, 300 * time.Second: 0} {
		r := fixture.Updating()
		r.Deployment.Status.Conditions[0] = deployments.NewCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown,
			deployments.ReasonPartition, "at 2", fixture.Start.Add(-ago))
		status := deployments.StatusFormula{Deployment: r.Deployment, Sets: r.ReplicaSets, New: r.ReplicaSets[1], Stage: "at 2",
			Now: fixture.Start}.NativeStatus()
		c := apps.DeploymentCondition(status, appsv1.DeploymentProgressing)
		if got := fixture.Start.Sub(c.LastUpdateTime.Time); got != want || c.Reason != deployments.ReasonPartition {
			t.Errorf("it was written %s ago, and then its time is %s ago: %+v", ago, got, c)
		}
	}
}

// TestStageIsReached: kubectl stayput promote lowers the partition once the stage is reached. It is not while the user pauses the rollout,
// and while pods are still to be created, deleted or counted: users cannot know yet whether all pods of this stage work.
func TestStageIsReached(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*deployments.Rollout)
		want   bool
	}{
		"nothing else is under way": {func(*deployments.Rollout) {}, true},
		"a pod is yet to be added": {func(r *deployments.Rollout) {
			r.Deployment.Spec.Replicas, r.Seen.Settings.Partition.Value = new(int32(5)), "3"
		}, false},
		"a surge pod is yet to go": {func(r *deployments.Rollout) {
			b := r.ReplicaSets[1]
			b.Spec.Replicas, b.Status.Replicas, b.Labels[inplace.LabelSurgeReplicas] = new(int32(3)), 3, "1"
			fixture.PodOf(r, "surge", b).Annotations = map[string]string{inplace.AnnotationSurgePod: "true"}
		}, false},
		"a mark is yet to be stored":       {func(r *deployments.Rollout) { delete(r.ReplicaSets[0].Labels, inplace.LabelUpdating) }, false},
		"a pod that has moved is not seen": {uncounted, false},
		"the user pauses the rollout":      {func(r *deployments.Rollout) { r.Deployment.Spec.Paused = true }, false},
	} {
		r := twoOfFour(nil, nil, nil, nil)
		r.Seen.Settings.Partition.Value = "2"
		test.change(r)
		if stage := r.Stage(); stage.Reached != test.want {
			t.Errorf("%s: %+v", name, stage)
		}
	}
}

// TestItWaitsForASecondPod: no pod may be unavailable, and a second one may find no node beside the first. As long as no new pod serves,
// users are told that this is what the update waits for.
func TestItWaitsForASecondPod(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*deployments.Rollout)
		want   bool
	}{
		"it does not serve yet": {func(*deployments.Rollout) {}, true},
		"it serves": {func(r *deployments.Rollout) {
			fixture.ConditionIs(corev1.PodReady, corev1.ConditionTrue)(r.Seen.Pods[2])
		}, false},
		"it may be on any node":   {func(r *deployments.Rollout) { r.Seen.DryRun.Claim = "" }, false},
		"pods may be unavailable": {func(r *deployments.Rollout) { mayBeUnavailable(r, "1%") }, false},
		"no pod is to restart":    {relabelled, false},
	} {
		r := surging(fixture.Unready)
		mayBeUnavailable(r, "0")
		r.Seen.DryRun.Claim = "data"
		test.change(r)
		const want = "waiting for a second pod, as maxUnavailable is 0, and "
		if message := r.Plan().Message; strings.Contains(message, want) != test.want {
			t.Errorf("%s: it says %q", name, message)
		}
	}
}

func TestCompletionIsNeverWritten(t *testing.T) {
	r := fixture.Updating()
	oldRS, newRS := r.ReplicaSets[0], r.ReplicaSets[1]
	oldRS.Spec.Replicas, oldRS.Status = new(int32), appsv1.ReplicaSetStatus{ObservedGeneration: 1}
	newRS.Spec.Replicas, newRS.Status.Replicas, newRS.Status.AvailableReplicas = new(int32(4)), 4, 4
	if status, _ := statusOf(r); status != nil {
		t.Errorf("the status is %+v", status)
	}
}

func TestCreatedReplicaSet(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v2"})
	r.Deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	r.Deployment.Annotations = map[string]string{inplace.AnnotationRevision: "4", corev1.LastAppliedConfigAnnotation: "{}", "note": "x"}
	fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1).Annotations[inplace.AnnotationRevision] = "4"
	planned := r.Plan().Steps
	if len(planned) != 1 {
		t.Fatalf("steps are %v", planned)
	}
	var rs apps.ReplicaSet
	if err := fixture.Recode(planned[0].(steps.CreateReplicaSet).Object, &rs); err != nil {
		t.Fatal(err)
	}
	hash := rs.Labels[inplace.LabelTemplateHash]
	if rs.Name != "web-"+hash || rs.Spec.Selector.MatchLabels[inplace.LabelTemplateHash] != hash ||
		rs.Spec.Template.Typed().Labels[inplace.LabelTemplateHash] != hash {
		t.Errorf("the hash is not the same everywhere: %+v", rs)
	}
	if apps.Replicas(&rs) != 0 || !metav1.IsControlledBy(&rs, r.Deployment) ||
		!apps.SameTemplate(rs.Spec.Template, r.Deployment.Spec.Template) {
		t.Errorf("not an empty ReplicaSet of the Deployment: %+v", rs)
	}
	want := map[string]string{inplace.AnnotationRevision: "5", inplace.AnnotationDesired: "1", inplace.AnnotationMax: "1", "note": "x"}
	if len(rs.Annotations) != len(want) ||
		slices.ContainsFunc([]string{inplace.AnnotationRevision, inplace.AnnotationDesired, inplace.AnnotationMax, "note"},
			func(key string) bool { return rs.Annotations[key] != want[key] }) {
		t.Errorf("annotations are %v", rs.Annotations)
	}
}

// TestTemplateHashCountsCollisions: the hash is that of a Deployment on Kubernetes 1.36. TestPodTemplateSpecHash in
// pkg/controller/deployment/util/hash_test.go checks that different templates have different hashes. This checks that collisions change the
// hash.
func TestTemplateHashCountsCollisions(t *testing.T) {
	template := fixture.App{Image: "v1"}.Template().Typed()
	hashes := []string{apps.TemplateHash(template, nil), apps.TemplateHash(template, new(int32)), apps.TemplateHash(template, new(int32(1)))}
	slices.Sort(hashes)
	if len(slices.Compact(hashes)) != 3 {
		t.Errorf("hashes are %v", hashes)
	}
}
