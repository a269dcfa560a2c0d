package simulation

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// persistedFallback is the hash that a plan puts on record; false if it does not.
func persistedFallback(plan steps.Plan) (string, bool) {
	for _, step := range plan.Steps {
		if fallback, is := step.(steps.PersistFallback); is {
			return fallback.Fallback.Hash, true
		}
	}
	return "", false
}

func forgets(plan steps.Plan) bool {
	return slices.ContainsFunc(plan.Steps, func(step steps.Step) bool { _, is := step.(steps.ForgetFallback); return is })
}

// The label by which an update is given back is a write like that which was refused.
func TestRefusedFallbackIsPersisted(t *testing.T) {
	r := fixture(2, app{image: "v2"})
	source := replicaSetOf(r, "a", app{image: "v1"}, 2)
	replicaSetOf(r, "b", app{image: "v2"}, 0)
	podOf(r, "p", source)
	podOf(r, "q", source)
	r.Deployment.Status.Conditions = []appsv1.DeploymentCondition{
		statuses.NewCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, statuses.ReasonMinimumAvailable, "", start.Add(-time.Hour))}
	for code, want := range map[string]bool{inplace.CodeRefused: true, inplace.CodeFailing: true, inplace.CodeNativeRollout: true, inplace.CodeUninstalled: false} {
		if _, is := persistedFallback(r.FallBack(inplace.Reason{Code: code})); is != want {
			t.Errorf("%s goes on record: %t", code, is)
		}
	}
	hash, _ := persistedFallback(r.FallBack(inplace.Reason{Code: inplace.CodeRefused}))
	r.PersistedFallback = hash
	if decision := r.Decision(); decision.Held || decision.Reasons[0].Code != inplace.CodeFellBack {
		t.Fatalf("what is on record is %+v", decision)
	}
	plan := r.Plan()
	nudge, ok := plan.Steps[0].(steps.PatchStatus)
	if !ok || len(plan.Steps) != 1 || len(nudge.Operations) != 2 || !nudge.Status.Conditions[0].LastUpdateTime.Time.Equal(start) {
		t.Errorf("nobody wakes the Deployment controller: %+v", plan.Steps)
	}
	r.Deployment.Status = nudge.Status
	if plan := r.Plan(); len(plan.Steps) > 0 || plan.After != revisions.NudgeEvery {
		t.Errorf("it is woken again at once: %+v", plan)
	}
	source.Spec.Replicas, source.Status.Replicas, r.Pods = new(int32), 0, nil
	r.ReplicaSets[1].Spec.Replicas = new(int32(2))
	if plan := r.Plan(); !forgets(plan) {
		t.Errorf("the record outlives its update: %+v", plan)
	}
}

// Undone and scaled down while no mark may be written: nothing is left to update, and the mark would keep three pods for ever.
func TestFallbackLetsPodsGoThatAMarkKeeps(t *testing.T) {
	r := fixture(1, app{image: "v1"})
	source := replicaSetOf(r, "a", app{image: "v1"}, 1)
	source.Labels[inplace.LabelUpdating] = begun
	for _, name := range []string{"p", "q"} {
		podOf(r, name, source)
	}
	hash, is := persistedFallback(r.FallBack(inplace.Reason{Code: inplace.CodeRefused}))
	if !is {
		t.Fatal("it does not go on record")
	}
	r.PersistedFallback = hash
	if plan := r.Plan(); forgets(plan) || nudges(plan) != 1 {
		t.Errorf("the ReplicaSet controller is not woken: %+v", plan.Steps)
	}
	source.Labels[inplace.LabelUpdating] = ""
	r.Pods, source.Status.Replicas = r.Pods[:1], 1
	if plan := r.Plan(); !forgets(plan) || nudges(plan) != 0 {
		t.Errorf("it goes on although the pods are gone: %+v", plan.Steps)
	}
}

// An edit that only new pods can follow, while no mark may be taken off: when nobody has signed it for long enough, deletions pass, of which
// nobody would know.
func TestExpiredMarkNudgesTheDeleter(t *testing.T) {
	r := fixture(2, app{image: "v1", env: "new"})
	source := replicaSetOf(r, "a", app{image: "v1"}, 1)
	source.Labels[inplace.LabelUpdating] = times.Seconds(start)
	replicaSetOf(r, "b", app{image: "v1", env: "new"}, 1)
	for _, name := range []string{"p", "q"} {
		podOf(r, name, source)
	}
	if plan := r.Plan(); plan.Decision.Held || nudges(plan) > 0 || plan.After > revisions.HoldDuration {
		t.Fatalf("as long as deletions are held: %+v", plan)
	}
	r.Now = start.Add(revisions.HoldDuration)
	if plan := r.Plan(); nudges(plan) != 1 {
		t.Errorf("the ReplicaSet controller is not woken: %+v", plan.Steps)
	}
	r.Mode = inplace.ModeNone
	if plan := r.Plan(); nudges(plan) > 0 {
		t.Error("it writes to a pod where it may not")
	}
}

// nudges counts the pods by which somebody is woken.
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
	r := fixture(2, app{image: "v2"})
	source := replicaSetOf(r, "a", app{image: "v1"}, 2)
	podOf(r, "p", source)
	r.PersistedFallback, _ = persistedFallback(r.FallBack(inplace.Reason{Code: inplace.CodeFailing}))
	r.Deployment.Spec.Template = app{image: "v3"}.template()
	if plan := r.Plan(); !plan.Decision.Held || !forgets(plan) {
		t.Errorf("a further edit is not ours: %+v", plan)
	}
}

func TestDaemonFallbackPersisted(t *testing.T) {
	f := newFleet(t, 2)
	f.edit(app{image: "v2"})
	f.PersistedFallback = f.TemplateHash()
	if held, _ := f.HoldsDeletion(f.Pods[0]); held {
		t.Error("a deletion is held of an update that is given back")
	}
	nudged := map[string]bool{}
	for range 3 {
		f.once()
		for _, pod := range f.Pods {
			nudged[pod.Annotations[inplace.AnnotationNudged]] = true
		}
		f.Now = f.Now.Add(revisions.NudgeDaemonSetEvery)
	}
	delete(nudged, "")
	if len(nudged) != 3 {
		t.Errorf("the DaemonSet controller was woken %d times in three", len(nudged))
	}
	f.edit(app{image: "v3"})
	if f.once(); f.PersistedFallback != "" {
		t.Error("the record is about a template that nobody wants any more")
	}
}

// The oldest give way.
func TestFallbacksAreBounded(t *testing.T) {
	fallbacks := revisions.Fallbacks{}
	for i := range revisions.MaxFallbacks + 5 {
		fallbacks.Add(types.UID(fmt.Sprint("w", i)), revisions.Fallback{Hash: fmt.Sprint("h", i), Code: inplace.CodeFailing}, start.Add(time.Duration(i)*time.Second))
	}
	if len(fallbacks) != revisions.MaxFallbacks || fallbacks.Of("w4") != (revisions.Fallback{}) || fallbacks.Of("w5") != (revisions.Fallback{Hash: "h5", Code: inplace.CodeFailing}) {
		t.Errorf("%d are kept: w4 %+v, w5 %+v", len(fallbacks), fallbacks.Of("w4"), fallbacks.Of("w5"))
	}
	if fallbacks.Remove("w5"); fallbacks.Of("w5") != (revisions.Fallback{}) || fallbacks.Of("w6").Hash != "h6" {
		t.Error("the wrong one was removed")
	}
}

// What fails must not keep the rest from being done, and least of all a gate from opening.
func TestStepsComeInTheOrderOfWhatTheyAreWorth(t *testing.T) {
	r := updating()
	r.Settings = inplace.Settings{}
	podOf(r, "a3", r.ReplicaSets[0], drained)
	podOf(r, "b3", r.ReplicaSets[1], func(pod *corev1.Pod) { conditionIs(inplace.ConditionServing, corev1.ConditionFalse)(pod) })
	r.Deployment.Status.ReadyReplicas = 0
	ranks := map[string]int{"inplace.SetGate true": 0, "inplace.PatchStatus": 1, "inplace.SetGate false": 3}
	last := 0
	for _, step := range r.Plan().Steps {
		kind := fmt.Sprintf("%T", step)
		if gate, is := step.(steps.SetGate); is {
			kind += fmt.Sprint(" ", gate.Open)
		}
		rank, known := ranks[kind]
		if !known {
			rank = 2
		}
		if rank < last {
			t.Errorf("%s comes late", step.Describe())
		}
		last = rank
	}
	if last == 0 {
		t.Error("there was nothing to put in order")
	}
}
