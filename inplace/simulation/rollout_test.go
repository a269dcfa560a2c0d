package simulation

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/native"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/times"
)

var start = time.Unix(1_000_000, 0)

// begun is the mark of an update that began at start.
var begun = times.Seconds(start)

// fixture returns a rollout for tables. ReplicaSets are named after their hash.
func fixture(replicas int32, a app) *deployments.Rollout {
	return &deployments.Rollout{Deployment: newDeployment(replicas, a),
		Seen: engine.Snapshot{Mode: inplace.ModeInPlace, Rules: allInPlace, Now: start}}
}

// replicaSetOf adds a ReplicaSet whose status is up to date.
func replicaSetOf(r *deployments.Rollout, hash string, a app, size int32) *apps.ReplicaSet {
	rs := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web-" + hash, Namespace: "shop", UID: types.UID(hash), Generation: 1,
		ResourceVersion:   "1",
		CreationTimestamp: metav1.NewTime(start.Add(time.Duration(len(r.ReplicaSets)-100) * time.Minute)),
		Labels:            map[string]string{"app": "web", inplace.LabelTemplateHash: hash}, Annotations: map[string]string{}}}
	setReplicasAnnotations(r.Deployment, rs)
	rs.Spec.Replicas, rs.Spec.Template = &size, a.template()
	rs.Status.Replicas, rs.Status.ObservedGeneration = size, 1
	r.ReplicaSets = append(r.ReplicaSets, rs)
	r.Seen.DryRun = admitted(r.UpdateRevision())
	return rs
}

// admitted returns a dry run in which admission changes nothing.
func admitted(newRS *apps.ReplicaSet) dryrun.Result {
	if newRS == nil {
		return dryrun.Result{}
	}
	return dryrun.Result{UpdateRevision: newRS.UID, Pod: &corev1.Pod{Spec: newRS.Spec.Template.Typed().Spec}}
}

// podOf adds a gated pod that serves.
func podOf(r *deployments.Rollout, name string, rs *apps.ReplicaSet, changes ...func(*corev1.Pod)) *corev1.Pod {
	template := rs.Spec.Template.Typed()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1, ResourceVersion: "1",
		Labels:          native.WithHash(template.Labels, rs.Labels[inplace.LabelTemplateHash]),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}},
		Spec: template.Spec}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ObservedGeneration: 1}
	for _, kind := range []corev1.PodConditionType{inplace.ConditionServing, corev1.ContainersReady, corev1.PodReady} {
		conditionIs(kind, corev1.ConditionTrue)(pod)
	}
	for i, c := range kept(pod.Spec) {
		list := &pod.Status.ContainerStatuses
		if i >= len(pod.Spec.Containers) {
			list = &pod.Status.InitContainerStatuses
		}
		*list = append(*list, corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: "sha256:" + c.Image,
			ContainerID: name + "/" + c.Name, Ready: true, State: runningSince(start.Add(-time.Hour))})
	}
	for _, change := range changes {
		change(pod)
	}
	r.Seen.Pods = append(r.Seen.Pods, pod)
	return pod
}

func runningSince(at time.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}
}

func conditionIs(kind corev1.PodConditionType, status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(start.Add(-time.Hour))})
	}
}

func unready(pod *corev1.Pod) {
	conditionIs(corev1.PodReady, corev1.ConditionFalse)(pod)
	conditionIs(corev1.ContainersReady, corev1.ConditionFalse)(pod)
}

func drained(pod *corev1.Pod) {
	conditionIs(inplace.ConditionServing, corev1.ConditionFalse)(pod)
	conditionIs(corev1.PodReady, corev1.ConditionFalse)(pod)
	conditions.Condition(pod, corev1.PodReady).Reason = readiness.ReasonGatesNotReady
}

// tolerateTheSame reports whether the tolerations are the same, in any order.
func tolerateTheSame(a, b []corev1.Toleration) bool {
	return len(edit.Missing(a, b)) == 0 && len(edit.Missing(b, a)) == 0
}

func ungated(pod *corev1.Pod) {
	pod.Spec.ReadinessGates = nil
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions,
		func(c corev1.PodCondition) bool { return c.Type == inplace.ConditionServing })
}

func TestUpdateRevisionIsTheOldestWithTheTemplate(t *testing.T) {
	r := fixture(3, app{image: "v2"})
	replicaSetOf(r, "a", app{image: "v1"}, 3)
	replicaSetOf(r, "c", app{image: "v2"}, 0)
	replicaSetOf(r, "b", app{image: "v2"}, 0)
	if newRS := r.UpdateRevision(); newRS.Name != "web-c" {
		t.Errorf("update revision is %s, not web-c, the older one with the same template", newRS.Name)
	}
	r.ReplicaSets[2].CreationTimestamp = r.ReplicaSets[1].CreationTimestamp
	if newRS := r.UpdateRevision(); newRS.Name != "web-b" {
		t.Errorf("update revision is %s, not web-b, the first by name of two of the same age", newRS.Name)
	}
	r.Deployment.Spec.Template = app{image: "v3"}.template()
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
		"nothing to update": {func(r *deployments.Rollout) { r.Deployment.Spec.Template = app{image: "v1"}.template() }, false,
			""},
		"an old ReplicaSet without replicas whose pods are still there": {func(r *deployments.Rollout) {
			r.ReplicaSets[0].Spec.Replicas = new(int32)
		}, true, ""},
		"only a mark is left": {func(r *deployments.Rollout) {
			r.ReplicaSets[0].Spec.Replicas, r.ReplicaSets[0].Status.Replicas = new(int32), 0
			r.ReplicaSets[0].Labels[inplace.LabelUpdating] = begun
		}, true, ""},
		"only old ReplicaSets without pods": {func(r *deployments.Rollout) {
			r.ReplicaSets[0].Spec.Replicas, r.ReplicaSets[0].Status.Replicas = new(int32), 0
		}, false, ""},
		"no label":      {func(r *deployments.Rollout) { r.Seen.Mode = inplace.ModeNone }, false, inplace.CodeMode},
		"opted out":     {func(r *deployments.Rollout) { r.Seen.Mode = inplace.ModeRecreate }, false, inplace.CodeMode},
		"in place only": {func(r *deployments.Rollout) { r.Seen.Mode = inplace.ModeInPlaceOnly }, true, ""},
		"deleting":      {func(r *deployments.Rollout) { r.Deployment.DeletionTimestamp = &metav1.Time{} }, false, inplace.CodeDeleting},
		"too large":     {func(r *deployments.Rollout) { r.Seen.Unread = "too large" }, false, inplace.CodeTooLarge},
		"fallen back": {func(r *deployments.Rollout) { r.ReplicaSets[1].Labels[inplace.LabelFallback] = "1" }, false,
			inplace.CodeFellBack},
		"another one fell back": {func(r *deployments.Rollout) { r.ReplicaSets[0].Labels[inplace.LabelFallback] = "1" }, true, ""},
		"fallen back before the update revision was there": {func(r *deployments.Rollout) {
			r.ReplicaSets = r.ReplicaSets[:1]
			r.ReplicaSets[0].Labels[inplace.LabelFallback] = "1." + r.TemplateHash()
		}, false, inplace.CodeFellBack},
		"another edit fell back before that": {func(r *deployments.Rollout) { r.ReplicaSets[0].Labels[inplace.LabelFallback] = "1.abc" }, true,
			""},
		"Recreate, one replica":    {recreate(1), true, ""},
		"Recreate, three replicas": {recreate(3), false, inplace.CodeStrategy},
		"maxUnavailable 0":         {maxUnavailable("0"), false, inplace.CodeMaxUnavailable},
		"maxUnavailable 0%":        {maxUnavailable("0%"), false, inplace.CodeMaxUnavailable},
		"maxUnavailable 1%":        {maxUnavailable("1%"), true, ""},
		"an old ReplicaSet that cannot be updated": {func(r *deployments.Rollout) {
			replicaSetOf(r, "c", app{image: "v2", env: "x"}, 1)
		}, false, inplace.CodeTemplateField},
		"an old ReplicaSet that cannot be updated, without pods": {func(r *deployments.Rollout) {
			replicaSetOf(r, "c", app{image: "v2", env: "x"}, 0)
		}, true, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fixture(3, app{image: "v2"})
			replicaSetOf(r, "a", app{image: "v1"}, 3)
			replicaSetOf(r, "b", app{image: "v2"}, 0)
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
	r := fixture(1, app{image: "v2"})
	r.Deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	replicaSetOf(r, "a", app{image: "v1"}, 1)
	step, reason := native.NewReplicaSet(r.Deployment, r.ReplicaSets)
	if reason != nil || !r.Decision().Held {
		t.Fatalf("not created: %+v", reason)
	}
	r.ReplicaSets[0].Name = step.Name
	if decision := r.Decision(); decision.Held || decision.Reasons[0].Code != inplace.CodeCannotCreate {
		t.Errorf("held although %s exists with another template: %+v", step.Name, decision)
	}
}

func TestCreateGoesNativeWhereTemplateHasNewerFields(t *testing.T) {
	r := fixture(1, app{})
	template, err := apps.ParseTemplate([]byte(`{"metadata":{"labels":{"app":"web"}},` +
		`"spec":{"containers":[{"name":"app","image":"v2"}],"newer":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Deployment.Spec.Template = template
	if _, reason := native.NewReplicaSet(r.Deployment, r.ReplicaSets); reason == nil || reason.Code != inplace.CodeCannotCreate {
		t.Errorf("created, which would lose a field: %+v", reason)
	}
}
