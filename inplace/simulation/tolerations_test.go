package simulation

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

func TestStepsOfATolerationAndItsUndo(t *testing.T) {
	s := newLockstep(t, 2, nil)
	before := sorted(s.pods.objects)
	s.edit("adds a toleration", fixture.App{Image: "v1", Tolerates: "a"})
	s.rest()
	s.expect("A marks", "B marks", "A 2 → 1", "move 1", "B 0 → 1", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
	s.intact(before)
	for _, pod := range sorted(s.pods.objects) {
		if tolerations := pod.Spec.Tolerations; len(tolerations) != 3 || tolerations[2].Key != "a" {
			t.Errorf("%s has %v, want a behind the two default ones", pod.Name, tolerations)
		}
	}
	s.edit("undoes", fixture.App{Image: "v1"})
	if decision := s.rollout().Decision(); decision.Held || decision.Reasons[0].Path != "/spec/tolerations" {
		t.Errorf("decision on the undo is %+v, want it native", decision)
	}
	s.rest()
	s.checkEnd()
	for _, pod := range before {
		if s.pods.objects[pod.Name] != nil {
			t.Errorf("%s is still there, and was to lose a toleration", pod.Name)
		}
	}
}

func TestStepsOfATolerationAndAnImage(t *testing.T) {
	s := newLockstep(t, 2, nil)
	before := sorted(s.pods.objects)
	s.edit("adds a toleration and sets the image", fixture.App{Image: "v2", Tolerates: "a b"})
	s.rest()
	s.intact(before)
}

// TestUndoOfATolerationMidUpdate: pods that already have the toleration are replaced, the others stay.
func TestUndoOfATolerationMidUpdate(t *testing.T) {
	s := newLockstep(t, 3, nil)
	before := sorted(s.pods.objects)
	s.edit("adds a toleration and sets the image", fixture.App{Image: "v2", Tolerates: "a"})
	s.until(func() bool {
		newRS := s.rollout().UpdateRevision()
		return newRS != nil && newRS.Status.Replicas == 1
	})
	s.edit("undoes", fixture.App{Image: "v1"})
	s.rest()
	s.checkEnd()
	stayed := 0
	for _, pod := range before {
		if s.pods.objects[pod.Name] != nil {
			stayed++
		}
	}
	if stayed != 2 {
		t.Errorf("%d pods stayed, want the two that had not moved", stayed)
	}
}

// TestTolerationsInThePlaceOfDefaults: a toleration of the template replaces a default one, or only the dry run shows that.
func TestTolerationsInThePlaceOfDefaults(t *testing.T) {
	r, pod := fixture.ToV2()
	own := fixture.App{Image: "v2", Tolerates: corev1.TaintNodeNotReady}
	r.ReplicaSets[1].Spec.Template, r.Deployment.Spec.Template = own.Template(), own.Template()
	if decision := r.Decision(); decision.Held || decision.Reasons[0].Path != "/spec/tolerations" {
		t.Errorf("decision is %+v, want it native", decision)
	}
	for name, test := range map[string]struct {
		has, admitted string
		code          string
	}{
		"the same":                     {"x", "a x", ""},
		"has what is added":            {"a x", "x a", ""},
		"has one that new pods lack":   {"x y", "a x", inplace.CodeInjected},
		"lacks one that new pods have": {"", "a x", inplace.CodeInjected},
		"whose order differs":          {"y x", "x a y", ""},
	} {
		tolerations := func(keys string) []corev1.Toleration {
			return fixture.App{Tolerates: keys}.Template().Decoded().Spec.Tolerations
		}
		own := fixture.App{Image: "v2", Tolerates: "a"}
		r.ReplicaSets[1].Spec.Template, r.Deployment.Spec.Template = own.Template(), own.Template()
		pod.Spec.Tolerations = tolerations(test.has)
		r.Seen.DryRun.Pod.Spec.Tolerations = tolerations(test.admitted)
		plan := r.Plan()
		if held := plan.Decision.Held; held != (test.code == "") || !held && plan.Decision.Reasons[0].Code != test.code {
			t.Errorf("%s: held %t, %s", name, held, plan.Decision.Reasons)
		}
		r.Seen.DryRun.Pod.Spec.Tolerations, pod.Spec.Tolerations = nil, tolerations("y")
		image := fixture.App{Image: "v2"}
		r.ReplicaSets[1].Spec.Template, r.Deployment.Spec.Template = image.Template(), image.Template()
		if plan := r.Plan(); !plan.Decision.Held {
			t.Errorf("an image alone: %s", plan.Decision.Reasons)
		}
	}
}

func TestDaemonStepsOfAToleration(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v1", Tolerates: "a"})
	f.Rest()
	f.Expect("mark 2 true false", "p1 is 2 app=v1", "p2 is 2 app=v1", "mark 2 false false")
	if !fixture.TolerateTheSame(f.Seen.Pods[0].Spec.Tolerations, f.DaemonSet.Spec.Template.Typed().Spec.Tolerations) {
		t.Errorf("tolerations are %v", f.Seen.Pods[0].Spec.Tolerations)
	}
}

// TestDaemonsToMoreNodes: the DaemonSet tolerates another node from now on, which has no pod yet. This keeps no other pod from being
// updated.
func TestDaemonsToMoreNodes(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.AddNode("n3").Spec.Taints = fixture.Taint(corev1.TaintEffectNoExecute)
	f.Edit(fixture.App{Image: "v1", Tolerates: "dedicated"})
	f.Rest()
	f.Expect("mark 2 true false", "p1 is 2 app=v1", "p2 is 2 app=v1", "mark 2 false false")
	f.AddPod("p3", "n3") // as the native controller does
	f.Rest()
	f.Expect()
	if held, why := f.HoldsDeletion(f.Seen.Pods[2]); !held {
		t.Errorf("the pod of the new node may be deleted: %s", why.Message)
	}
}

func TestDaemonUndoOfATolerationMidUpdate(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v2", Tolerates: "a"})
	for len(f.Steps) < 3 {
		f.Once()
	}
	f.Expect("mark 2 true false", "out p1", "p1 is 2 app=v2")
	f.Edit(fixture.App{Image: "v1"})
	f.Rest()
	for _, revision := range f.Revisions {
		if revision.Labels[inplace.LabelUpdating] != "" {
			t.Errorf("%s is still marked: %v", revision.Name, revision.Labels)
		}
	}
	if held, why := f.HoldsDeletion(f.Seen.Pods[0]); held || why.Path != "/spec/tolerations" {
		t.Errorf("deletion of what has the toleration is held: %t, %+v", held, why)
	}
	if held, why := f.HoldsDeletion(f.Seen.Pods[1]); !held {
		t.Errorf("what has not moved may be deleted: %s", why.Message)
	}
}

// TestDaemonKeepsTheControllersTolerations: the native controller replaces tolerations of the template with its own, in new pods and in
// that of the dry run.
func TestDaemonKeepsTheControllersTolerations(t *testing.T) {
	f := fixture.NewFleet(t, 1)
	f.Edit(fixture.App{Image: "v2"})
	f.Seen.DryRun = dryrun.Result{}
	f.Seen.Pods[0].Spec.Tolerations = dryRunPod(t, f).Spec.Tolerations
	var template corev1.PodTemplateSpec
	template.Labels = map[string]string{"app": "web"}
	template.Spec = fixture.App{Image: "v1"}.Template().Typed().Spec
	template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists},
		{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			TolerationSeconds: new(int64(30))}}
	f.SetTemplate(fixture.AsTemplate(template))
	f.Seen.DryRun = dryrun.Result{}
	made := dryRunPod(t, f)
	f.Seen.DryRun = dryrun.Result{UpdateRevision: f.UpdateRevision().UID, Pod: made}
	f.Rest()
	f.Expect("mark 3 true false", "p1 is 3 app=v1", "mark 3 false false")
	if got := f.Seen.Pods[0].Spec.Tolerations; len(got) != 7 || !fixture.TolerateTheSame(got, made.Spec.Tolerations) {
		t.Errorf("the pod tolerates %v, a new one %v", got, made.Spec.Tolerations)
	}
}

// dryRunPod returns the pod of the dry run that the next plan asks for.
func dryRunPod(t *testing.T, f *fixture.Fleet) *corev1.Pod {
	t.Helper()
	plan, pod := f.Plan(), &corev1.Pod{}
	if plan.DryRun == nil {
		t.Fatalf("nothing is asked: %+v", plan)
	}
	if err := json.Unmarshal(plan.DryRun.Pod, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}
