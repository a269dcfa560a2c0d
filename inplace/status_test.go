package inplace

import (
	"math"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// updating is a Deployment of 4 in the middle of an update, with the status its last writer left.
func updating() *Rollout {
	r := fixture(4, app{image: "v2"})
	for i, hash := range []string{"a", "b"} {
		rs := r.replicaSet(hash, app{image: []string{"v1", "v2"}[i]}, 2)
		rs.Labels[LabelSettling] = begun
		rs.Status.ReadyReplicas, rs.Status.AvailableReplicas = 2, 2
		for _, name := range []string{"1", "2"} {
			r.pod(hash+name, rs)
		}
	}
	r.Deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 4, UpdatedReplicas: 2, ReadyReplicas: 4, AvailableReplicas: 4,
		Conditions: []appsv1.DeploymentCondition{
			newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonUpdated, "", start.Add(-time.Minute)),
			newCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, reasonMinimumAvailable, "", start.Add(-time.Minute)),
		}}
	return r
}

// statusOf returns the status the plan writes, nil if none, and when it looks again.
func statusOf(r *Rollout) (*appsv1.DeploymentStatus, time.Duration) {
	plan := r.Plan()
	for _, step := range plan.Steps {
		if patch, ok := step.(PatchStatus); ok {
			return &patch.Status, plan.After
		}
	}
	return nil, plan.After
}

func TestStatusIsWrittenOnlyWhenItChanges(t *testing.T) {
	r := updating()
	r.Deployment.Status.Conditions[0].LastUpdateTime = metav1.NewTime(start.Add(-570 * time.Second))
	if status, after := statusOf(r); status != nil || after != 31*time.Second {
		t.Errorf("the status is %+v, to be looked at again after %s, when the deadline has passed", status, after)
	}
}

func TestStatusCounts(t *testing.T) {
	r := updating()
	r.Deployment.Generation = 7
	target := r.ReplicaSets[1]
	target.Status.Replicas, target.Status.ReadyReplicas, target.Status.AvailableReplicas = 3, 1, 0
	target.Status.TerminatingReplicas, r.ReplicaSets[0].Status.TerminatingReplicas = new(int32(1)), new(int32(2))
	status, _ := statusOf(r)
	if status == nil {
		t.Fatal("no status")
	}
	status.Conditions = nil
	want := appsv1.DeploymentStatus{ObservedGeneration: 7, Replicas: 5, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 2,
		UnavailableReplicas: 2, TerminatingReplicas: status.TerminatingReplicas}
	if *status.TerminatingReplicas != 3 || len(statusOperations(*status, want)) > 0 {
		t.Errorf("the status is %+v, not %+v", status, want)
	}
}

func TestTerminatingIsLeftOutWhereNobodyKnowsIt(t *testing.T) {
	r := updating()
	r.ReplicaSets[0].Status.TerminatingReplicas = new(int32(2))
	if terminating := (formula{deployment: r.Deployment, sets: r.ReplicaSets}).terminating(); terminating != nil {
		t.Errorf("%d are terminating, although one ReplicaSet does not say", *terminating)
	}
	r.ReplicaSets[1].Status.ObservedGeneration = 0
	if terminating := (formula{deployment: r.Deployment, sets: r.ReplicaSets}).terminating(); terminating == nil || *terminating != 2 {
		t.Errorf("%v are terminating, although the other ReplicaSet was never synced", terminating)
	}
}

func TestStatusConditions(t *testing.T) {
	progressing := func(r *Rollout) *appsv1.DeploymentCondition { return &r.Deployment.Status.Conditions[0] }
	fewer := func(r *Rollout) { r.ReplicaSets[0].Status.AvailableReplicas = 0 }
	cases := map[string]struct {
		change    func(*Rollout)
		condition appsv1.DeploymentConditionType
		status    corev1.ConditionStatus
		reason    string
		updated   time.Time
	}{
		"progress moves the time": {func(r *Rollout) { r.Deployment.Status.UpdatedReplicas = 1 },
			appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonUpdated, start},
		"a step back does not": {fewer, appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonUpdated, start.Add(-time.Minute)},
		"too few available":    {fewer, appsv1.DeploymentAvailable, corev1.ConditionFalse, reasonMinimumMissing, start},
		"the deadline passed": {func(r *Rollout) { progressing(r).LastUpdateTime = metav1.NewTime(start.Add(-601 * time.Second)) },
			appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonTimedOut, start},
		"progress after the deadline": {func(r *Rollout) {
			progressing(r).Status, progressing(r).Reason = corev1.ConditionFalse, reasonTimedOut
			r.Deployment.Status.UpdatedReplicas = 1
		}, appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonUpdated, start},
		"the last rollout was complete: the deadline runs from now": {func(r *Rollout) {
			progressing(r).Reason, progressing(r).LastUpdateTime = reasonComplete, metav1.NewTime(start.Add(-time.Hour))
			fewer(r)
		}, appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonFound, start},
		"the last rollout was complete, and so is this one": {func(r *Rollout) {
			progressing(r).Reason, progressing(r).LastUpdateTime = reasonComplete, metav1.NewTime(start.Add(-time.Hour))
			r.ReplicaSets[0].Spec.Replicas, r.ReplicaSets[0].Status = new(int32), appsv1.ReplicaSetStatus{ObservedGeneration: 1}
			r.ReplicaSets[1].Spec.Replicas, r.ReplicaSets[1].Status.Replicas = new(int32(4)), 4
		}, appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonComplete, start.Add(-time.Hour)},
		"paused: nothing is estimated": {func(r *Rollout) {
			r.Deployment.Spec.Paused = true
			r.Deployment.Status.UpdatedReplicas = 1
		}, appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonUpdated, start.Add(-time.Minute)},
		"a ReplicaSet that fails": {func(r *Rollout) {
			r.ReplicaSets[0].Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate"}}
		}, appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate", time.Time{}},
		"no deadline": {func(r *Rollout) { r.Deployment.Spec.ProgressDeadlineSeconds = new(int32(math.MaxInt32)) },
			appsv1.DeploymentProgressing, "", "", time.Time{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := updating()
			c.change(r)
			status, _ := statusOf(r)
			if status == nil {
				t.Fatal("no status")
			}
			got := deploymentCondition(*status, c.condition)
			if got == nil {
				got = &appsv1.DeploymentCondition{}
			}
			if got.Status != c.status || got.Reason != c.reason || !got.LastUpdateTime.Time.Equal(c.updated) {
				t.Errorf("%s is %+v", c.condition, got)
			}
		})
	}
}

func TestCompletionIsNeverWritten(t *testing.T) {
	r := updating()
	source, target := r.ReplicaSets[0], r.ReplicaSets[1]
	source.Spec.Replicas, source.Status = new(int32), appsv1.ReplicaSetStatus{ObservedGeneration: 1}
	target.Spec.Replicas, target.Status.Replicas, target.Status.AvailableReplicas = new(int32(4)), 4, 4
	if status, _ := statusOf(r); status != nil {
		t.Errorf("the status is %+v", status)
	}
}

func TestCreatedReplicaSet(t *testing.T) {
	r := fixture(1, app{image: "v2"})
	r.Deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	r.Deployment.Annotations = map[string]string{annotationRevision: "4", corev1.LastAppliedConfigAnnotation: "{}", "note": "x"}
	r.replicaSet("a", app{image: "v1"}, 1).Annotations[annotationRevision] = "4"
	steps := r.Plan().Steps
	if len(steps) != 1 {
		t.Fatalf("steps are %v", steps)
	}
	var rs ReplicaSet
	if err := recode(steps[0].(CreateReplicaSet).Object, &rs); err != nil {
		t.Fatal(err)
	}
	hash := rs.Labels[labelTemplateHash]
	if rs.Name != "web-"+hash || rs.Spec.Selector.MatchLabels[labelTemplateHash] != hash || rs.Spec.Template.Labels()[labelTemplateHash] != hash {
		t.Errorf("the hash is not the same everywhere: %+v", rs)
	}
	if replicas(&rs) != 0 || !metav1.IsControlledBy(&rs, r.Deployment) || !SameTemplate(rs.Spec.Template, r.Deployment.Spec.Template) {
		t.Errorf("not an empty ReplicaSet of the Deployment: %+v", rs)
	}
	want := map[string]string{annotationRevision: "5", annotationDesired: "1", annotationMax: "1", "note": "x"}
	if len(rs.Annotations) != len(want) || slices.ContainsFunc([]string{annotationRevision, annotationDesired, annotationMax, "note"}, func(key string) bool { return rs.Annotations[key] != want[key] }) {
		t.Errorf("annotations are %v", rs.Annotations)
	}
}

// The hash is that of a Deployment on Kubernetes 1.36: TestPodTemplateSpecHash in pkg/controller/deployment/util/hash_test.go
// checks that different templates have different ones; this checks that collisions change it.
func TestTemplateHashCountsCollisions(t *testing.T) {
	template := app{image: "v1"}.template().Typed()
	hashes := []string{templateHash(template, nil), templateHash(template, new(int32)), templateHash(template, new(int32(1)))}
	slices.Sort(hashes)
	if len(slices.Compact(hashes)) != 3 {
		t.Errorf("hashes are %v", hashes)
	}
}
