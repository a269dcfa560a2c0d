package deployments_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

func TestUpdateRevisionIsTheOldestWithTheTemplate(t *testing.T) {
	r := fixture.New(3, fixture.App{Image: "v2"})
	fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 3)
	fixture.ReplicaSetOf(r, "c", fixture.App{Image: "v2"}, 0)
	fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
	if newRS := r.UpdateRevision(); newRS.Name != "web-c" {
		t.Errorf("update revision is %s, not web-c, the older one with the same template", newRS.Name)
	}
	r.ReplicaSets[2].CreationTimestamp = r.ReplicaSets[1].CreationTimestamp
	if newRS := r.UpdateRevision(); newRS.Name != "web-b" {
		t.Errorf("update revision is %s, not web-b, the first by name of two of the same age", newRS.Name)
	}
	r.Deployment.Spec.Template = fixture.App{Image: "v3"}.Template()
	if newRS := r.UpdateRevision(); newRS != nil {
		t.Errorf("update revision is %s although no template is equal", newRS.Name)
	}
}

func TestDecision(t *testing.T) {
	maxUnavailable := func(value string) func(*deployments.Rollout) {
		return func(r *deployments.Rollout) {
			r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.Parse(value))
		}
	}
	recreate := func(replicas int32) func(*deployments.Rollout) {
		return func(r *deployments.Rollout) {
			r.Deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
			r.Deployment.Spec.Replicas = &replicas
		}
	}
	cases := map[string]struct {
		change func(*deployments.Rollout)
		held   bool
		code   string
	}{
		"an image":                             {func(*deployments.Rollout) {}, true, ""},
		"the update revision is not there yet": {func(r *deployments.Rollout) { r.ReplicaSets = r.ReplicaSets[:1] }, true, ""},
		"nothing to update": {func(r *deployments.Rollout) { r.Deployment.Spec.Template = fixture.App{Image: "v1"}.Template() }, false,
			""},
		"an old ReplicaSet without replicas whose pods are still there": {func(r *deployments.Rollout) {
			r.ReplicaSets[0].Spec.Replicas = new(int32)
		}, true, ""},
		"only a mark is left": {func(r *deployments.Rollout) {
			r.ReplicaSets[0].Spec.Replicas, r.ReplicaSets[0].Status.Replicas = new(int32), 0
			r.ReplicaSets[0].Labels[inplace.LabelUpdating] = fixture.Begun
		}, true, ""},
		"only old ReplicaSets without pods": {func(r *deployments.Rollout) {
			r.ReplicaSets[0].Spec.Replicas, r.ReplicaSets[0].Status.Replicas = new(int32), 0
		}, false, ""},
		"no label":      {func(r *deployments.Rollout) { r.Seen.Mode = inplace.ModeNone }, false, inplace.CodeMode},
		"opted out":     {func(r *deployments.Rollout) { r.Seen.Mode = inplace.ModeNative }, false, inplace.CodeMode},
		"in place only": {func(r *deployments.Rollout) { r.Seen.Mode = inplace.ModeInPlaceOnly }, true, ""},
		"deleting":      {func(r *deployments.Rollout) { r.Deployment.DeletionTimestamp = &metav1.Time{} }, false, inplace.CodeDeleting},
		"too large":     {func(r *deployments.Rollout) { r.Seen.Unread = "too large" }, false, inplace.CodeTooLarge},
		"groups": {func(r *deployments.Rollout) {
			r.Deployment.Spec.Template = fixture.App{Image: "v2", Group: "llm"}.Template()
		}, false, inplace.CodeGroups},
		"fallen back": {func(r *deployments.Rollout) { r.Seen.Fallback.Hash = r.TemplateHash() }, false, inplace.CodeFellBack},
		"fallen back before the update revision was there": {func(r *deployments.Rollout) {
			r.ReplicaSets, r.Seen.Fallback.Hash = r.ReplicaSets[:1], r.TemplateHash()
		}, false, inplace.CodeFellBack},
		"another edit fell back before": {func(r *deployments.Rollout) { r.Seen.Fallback.Hash = "abc" }, true, ""},
		"Recreate, one replica":         {recreate(1), true, ""},
		"Recreate, three replicas":      {recreate(3), false, inplace.CodeStrategy},
		"maxUnavailable 0":              {maxUnavailable("0"), false, inplace.CodeMaxUnavailable},
		"maxUnavailable 0%":             {maxUnavailable("0%"), false, inplace.CodeMaxUnavailable},
		"maxUnavailable 1%":             {maxUnavailable("1%"), true, ""},
		"an old ReplicaSet that cannot be updated": {func(r *deployments.Rollout) {
			fixture.ReplicaSetOf(r, "c", fixture.App{Image: "v2", Env: "x"}, 1)
		}, false, inplace.CodeTemplateField},
		"an old ReplicaSet that cannot be updated, without pods": {func(r *deployments.Rollout) {
			fixture.ReplicaSetOf(r, "c", fixture.App{Image: "v2", Env: "x"}, 0)
		}, true, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(3, fixture.App{Image: "v2"})
			fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 3)
			fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
			c.change(r)
			decision := r.Decision()
			if decision.Held != c.held {
				t.Errorf("held is %v: %s", decision.Held, decision.Reasons)
			}
			if c.code == "" && len(decision.Reasons) > 0 || c.code != "" && !slices.Equal(decision.Reasons.Codes(), []string{c.code}) {
				t.Errorf("reasons are %v, not %q", decision.Reasons, c.code)
			}
		})
	}
}

func TestCreateWithRecreateNeedsANewName(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v2"})
	r.Deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1)
	step, reason := deployments.NewReplicaSet(r.Deployment, r.ReplicaSets)
	if reason != nil || !r.Decision().Held {
		t.Fatalf("not created: %+v", reason)
	}
	r.ReplicaSets[0].Name = step.Name
	if decision := r.Decision(); decision.Held || decision.Reasons[0].Code != inplace.CodeCannotCreate {
		t.Errorf("held although %s exists with another template: %+v", step.Name, decision)
	}
}

func TestCreateGoesNativeWhereTemplateHasNewerFields(t *testing.T) {
	r := fixture.New(1, fixture.App{})
	template, err := apps.ParseTemplate([]byte(`{"metadata":{"labels":{"app":"web"}},` +
		`"spec":{"containers":[{"name":"app","image":"v2"}],"newer":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Deployment.Spec.Template = template
	if _, reason := deployments.NewReplicaSet(r.Deployment, r.ReplicaSets); reason == nil || reason.Code != inplace.CodeCannotCreate {
		t.Errorf("created, which would lose a field: %+v", reason)
	}
}
