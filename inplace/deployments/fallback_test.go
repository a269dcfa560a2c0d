package deployments_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// persistedFallback returns the fallback that a plan persists; false if it persists none.
func persistedFallback(plan steps.Plan) (revisions.Fallback, bool) {
	for _, step := range plan.Steps {
		if fallback, is := step.(steps.PersistFallback); is {
			return fallback.Fallback, true
		}
	}
	return revisions.Fallback{}, false
}

func forgets(plan steps.Plan) bool {
	return slices.ContainsFunc(plan.Steps, func(step steps.Step) bool { _, is := step.(steps.ForgetFallback); return is })
}

// TestRefusedFallback: where writes are refused, the Deployment controller is nudged in two ways.
func TestRefusedFallbackIsPersisted(t *testing.T) {
	r := fixture.New(2, fixture.App{Image: "v2"})
	oldRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2)
	fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
	fixture.PodOf(r, "p", oldRS)
	fixture.PodOf(r, "q", oldRS)
	r.Deployment.Status.Conditions = []appsv1.DeploymentCondition{
		deployments.NewCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, deployments.ReasonMinimumAvailable, "",
			fixture.Start.Add(-time.Hour))}
	for code, want := range map[string]bool{inplace.CodeRefused: true, inplace.CodeFailing: true, inplace.CodeNativeRollout: true,
		inplace.CodeUninstalled: false} {
		if _, is := persistedFallback(r.FallBack(inplace.Reason{Code: code})); is != want {
			t.Errorf("%s is persisted: %t", code, is)
		}
	}
	fallback, _ := persistedFallback(r.FallBack(inplace.Reason{Code: inplace.CodeRefused}))
	r.Seen.Fallback = fallback
	if decision := r.Decision(); decision.Held || decision.Reasons[0].Code != inplace.CodeFellBack {
		t.Fatalf("the decision after a persisted fallback is %+v", decision)
	}
	plan := r.Plan()
	nudge, ok := plan.Steps[0].(steps.PatchStatus)
	if !ok || len(plan.Steps) != 2 || len(nudge.Operations) != 2 || !nudge.Status.Conditions[0].LastUpdateTime.Time.Equal(fixture.Start) {
		t.Errorf("the Deployment controller is not nudged: %+v", plan.Steps)
	}
	r.Deployment.Status = nudge.Status
	if err := fixture.Apply(r.ReplicaSets[1], plan.Steps[1].(steps.PatchReplicaSet).Operations); err != nil {
		t.Fatal(err)
	}
	if plan := r.Plan(); len(plan.Steps) > 0 || plan.After != revisions.RenewEvery {
		t.Errorf("it is nudged again at once: %+v", plan)
	}
	r.Seen.Now = r.Seen.Now.Add(revisions.RenewEvery)
	if plan := r.Plan(); fixture.Brief(plan.Steps) != "renewed" {
		t.Errorf("one nudge is enough where writes to the ReplicaSet succeed again: %+v", plan.Steps)
	}
	oldRS.Spec.Replicas, oldRS.Status.Replicas, r.Seen.Pods = new(int32), 0, nil
	r.ReplicaSets[1].Spec.Replicas = new(int32(2))
	if plan := r.Plan(); forgets(plan) {
		t.Errorf("the persisted fallback is forgotten although pods are missing: %+v", plan)
	}
	for _, name := range []string{"p", "q"} {
		fixture.PodOf(r, name, r.ReplicaSets[1])
	}
	if plan := r.Plan(); !forgets(plan) {
		t.Errorf("the persisted fallback outlives its update: %+v", plan)
	}
}

// TestWhatIsAsItWasGoesBackAtOnce: the pod has a mark of an update that fell back, and its own image all the same. Only the mark has to go,
// so it does not matter what admission makes of new pods. If the pod waited for that, it and its ReplicaSet would keep their marks for as
// long as a policy refuses new pods.
func TestWhatIsAsItWasGoesBackAtOnce(t *testing.T) {
	mark := readiness.Move{Hash: "b", Containers: map[string]readiness.MovedContainer{"app": {Image: "v2"}},
		Back: map[string]string{"app": "v1"}}
	for name, known := range map[string]dryrun.Result{
		"nothing is known": {}, "none is admitted": {UpdateRevision: "a", Refused: "not signed"},
	} {
		r, pod := markedRollout(mark, inplace.ModeNative)
		r.ReplicaSets[0].Labels[inplace.LabelUpdating] = fixture.Begun
		r.Seen.DryRun, r.Seen.OldDryRun = dryrun.Result{}, known
		plan := r.Plan()
		for _, step := range plan.Steps {
			if patch, is := step.(steps.PatchPod); is {
				if err := fixture.Apply(pod, patch.Operations); err != nil {
					t.Fatal(err)
				}
			}
		}
		if plan.DryRun != nil || readiness.MoveOf(pod).PartiallyPatched() {
			t.Errorf("%s: it asks %+v, and the pod has the mark %s", name, plan.DryRun, readiness.MoveOf(pod))
		}
	}
}

// TestFallbackNudgesTheReplicaSetController: the workload was undone and scaled down while the API server refused marks. Nothing is left to
// update, and the mark would hold the deletion of surplus pods for ever.
func TestFallbackNudgesTheReplicaSetController(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v1"})
	oldRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1)
	oldRS.Labels[inplace.LabelUpdating] = fixture.Begun
	for _, name := range []string{"p", "q"} {
		fixture.PodOf(r, name, oldRS)
	}
	fallback, is := persistedFallback(r.FallBack(inplace.Reason{Code: inplace.CodeRefused}))
	if !is {
		t.Fatal("it is not persisted")
	}
	r.Seen.Fallback = fallback
	if plan := r.Plan(); forgets(plan) || nudges(plan) != 1 {
		t.Errorf("the ReplicaSet controller is not nudged: %+v", plan.Steps)
	}
	oldRS.Labels[inplace.LabelUpdating] = ""
	r.Seen.Pods, oldRS.Status.Replicas = r.Seen.Pods[:1], 1
	if plan := r.Plan(); !forgets(plan) || nudges(plan) != 0 {
		t.Errorf("nudges go on although the pods are gone: %+v", plan.Steps)
	}
}

// TestFallbackNudgesForMissingPods: the controller of a ReplicaSet without all its pods may wait for the deletion of one that has moved.
// Then it looks again only with an event.
func TestFallbackNudgesForMissingPods(t *testing.T) {
	for name, test := range map[string]struct {
		has  int
		want []string
	}{
		"it has one of two": {1, []string{"web-a", "web-b"}},
		"it has both":       {2, []string{"web-b"}},
	} {
		r := fixture.New(2, fixture.App{Image: "v2"})
		oldRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2)
		fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
		for _, pod := range []string{"p", "q"}[:test.has] {
			fixture.PodOf(r, pod, oldRS)
		}
		fallback, is := persistedFallback(r.FallBack(inplace.Reason{Code: inplace.CodeRefused}))
		if !is {
			t.Fatal("it is not persisted")
		}
		r.Seen.Fallback = fallback
		var nudged []string
		for _, step := range r.Plan().Steps {
			if patch, is := step.(steps.PatchReplicaSet); is {
				nudged = append(nudged, patch.ReplicaSet.Name)
			}
		}
		if slices.Sort(nudged); !slices.Equal(nudged, test.want) {
			t.Errorf("%s: it nudges %v, not %v", name, nudged, test.want)
		}
	}
}

// TestExpiredMarkNudgesTheDeleter: an edit needs new pods, and the API server refuses to remove a mark. Once the hold of the mark has
// expired, deletions pass, but the ReplicaSet controller does not notice without a nudge.
func TestExpiredMarkNudgesTheDeleter(t *testing.T) {
	r := fixture.New(2, fixture.App{Image: "v1", Env: "new"})
	oldRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1)
	oldRS.Labels[inplace.LabelUpdating] = inplace.FormatTime(fixture.Start)
	fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v1", Env: "new"}, 1)
	for _, name := range []string{"p", "q"} {
		fixture.PodOf(r, name, oldRS)
	}
	if plan := r.Plan(); plan.Decision.Held || nudges(plan) > 0 || plan.After > revisions.HoldDuration {
		t.Fatalf("as long as deletions are held: %+v", plan)
	}
	r.Seen.Now = fixture.Start.Add(revisions.HoldDuration)
	if plan := r.Plan(); nudges(plan) != 1 {
		t.Errorf("the ReplicaSet controller is not nudged: %+v", plan.Steps)
	}
	r.Seen.Mode = inplace.ModeNone
	if plan := r.Plan(); nudges(plan) > 0 {
		t.Error("it writes to a pod where it may not")
	}
}

// nudges counts the pods with which the plan nudges the ReplicaSet controller.
func nudges(plan steps.Plan) int {
	nudged := 0
	for _, step := range plan.Steps {
		if patch, is := step.(steps.PatchPod); is && patch.Why == revisions.WhyNudge {
			nudged++
		}
	}
	return nudged
}

func TestFallbackIsAboutOneTemplate(t *testing.T) {
	r := fixture.New(2, fixture.App{Image: "v2"})
	oldRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2)
	fixture.PodOf(r, "p", oldRS)
	r.Seen.Fallback, _ = persistedFallback(r.FallBack(inplace.Reason{Code: inplace.CodeFailing}))
	r.Deployment.Spec.Template = fixture.App{Image: "v3"}.Template()
	if plan := r.Plan(); !plan.Decision.Held || !forgets(plan) {
		t.Errorf("a further edit is not updated in place: %+v", plan)
	}
}

func TestDaemonFallbackPersisted(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v2"})
	f.Seen.Fallback = revisions.Fallback{Hash: f.TemplateHash(), Code: inplace.CodeRefused}
	if held, _ := f.HoldsDeletion(f.Seen.Pods[0]); held {
		t.Error("a deletion is held after a fallback")
	}
	nudged := map[string]bool{}
	for range 3 {
		f.Once()
		for _, revision := range f.Revisions { // as if the API server refused the label
			delete(revision.Labels, inplace.LabelRenewed)
		}
		for _, pod := range f.Seen.Pods {
			nudged[pod.Annotations[inplace.AnnotationNudged]] = true
		}
		f.Seen.Now = f.Seen.Now.Add(revisions.NudgeUnretriedEvery)
	}
	delete(nudged, "")
	if len(nudged) != 3 {
		t.Errorf("the DaemonSet controller was nudged %d times in three plans", len(nudged))
	}
	f.Edit(fixture.App{Image: "v3"})
	if f.Once(); f.Seen.Fallback.Hash != "" {
		t.Error("the persisted fallback is about an old template")
	}
}

// TestRequestWhenUninstalled: Stayput does not return, so a request is refused. It must not wait for ever.
func TestRequestWhenUninstalled(t *testing.T) {
	for code, want := range map[string]string{inplace.CodeUninstalled: "refused app: why", inplace.CodeFailing: "waiting app: "} {
		r := fixture.Updating()
		pod := r.Seen.Pods[0]
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartContainers, "app")
		for _, step := range r.FallBack(inplace.Reason{Code: code, Message: "why"}).Steps {
			if patch, is := step.(steps.PatchPod); is && patch.Pod == pod {
				if err := fixture.Apply(pod, patch.Operations); err != nil {
					t.Fatal(err)
				}
			}
		}
		if said := pod.Annotations[inplace.AnnotationRestarted]; !strings.HasPrefix(said, want) {
			t.Errorf("%s: it says %q", code, said)
		}
	}
}
