package deployments_test

import (
	"math"
	"slices"
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
