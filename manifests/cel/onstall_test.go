package cel

import (
	"cmp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/stayput/stayput/inplace"
)

func TestOnStallIsRejectedWhereItDoesNotCount(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-settings")
	labelled := func(value string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "any", Labels: map[string]string{inplace.LabelOnStall: value}}
	}
	apps := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "apps/v1", Kind: kind} }
	for what, test := range map[string]struct {
		object  runtime.Object
		refused string
	}{
		"a Deployment to undo": {&appsv1.Deployment{TypeMeta: apps("Deployment"), ObjectMeta: labelled("undo")}, ""},
		"a Deployment to wait": {&appsv1.Deployment{TypeMeta: apps("Deployment"), ObjectMeta: labelled("wait")}, ""},
		"another value":        {&appsv1.Deployment{TypeMeta: apps("Deployment"), ObjectMeta: labelled("true")}, `"true" is neither undo`},
		"a namespace": {&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: labelled("undo")},
			""},
		"a DaemonSet":   {&appsv1.DaemonSet{TypeMeta: apps("DaemonSet"), ObjectMeta: labelled("undo")}, "no progress deadline"},
		"a StatefulSet": {&appsv1.StatefulSet{TypeMeta: apps("StatefulSet"), ObjectMeta: labelled("undo")}, "no progress deadline"},
	} {
		refused := policy.of(nil, test.object, &corev1.Namespace{}, &user.DefaultInfo{})
		if (refused != "") != (test.refused != "") || !strings.Contains(refused, test.refused) {
			t.Errorf("%s is refused with %q, want %q", what, refused, test.refused)
		}
	}
}

// TestOwnUndo checks that Stayput may give only a Deployment that has exceeded its deadline, and whose label asks for it, another template,
// and only one that running pods can take. e2e/ownpower_test.go asks an API server.
func TestOwnUndo(t *testing.T) {
	policy := compileRefusals(t, "../base/own-power.yaml", "stayput-own-undo")
	others := compileRefusals(t, "../base/own-power.yaml", "stayput-own-configuration") // bounds what notes no undo
	asking := labelled.DeepCopy()
	asking.Labels[inplace.LabelOnStall] = inplace.OnStallUndo
	const onlyAsked, onlyOnce, takes = "asks for an undo", "once for each ReplicaSet", "that running pods cannot take"
	const noUndo = "stayput edits only workloads with the annotation stayput.dev/restart-on-change"
	for name, test := range map[string]struct {
		in             *corev1.Namespace
		before, change func(d *appsv1.Deployment)
		refused        string // a part
	}{
		"an undo": {nil, nil, nil, ""},
		"an undo that the namespace asks for": {asking, func(d *appsv1.Deployment) {
			delete(d.Labels, inplace.LabelOnStall)
		}, nil, ""},
		"the workload's label goes first": {asking, func(d *appsv1.Deployment) {
			d.Labels[inplace.LabelOnStall] = inplace.OnStallWait
		}, nil, onlyAsked},
		"no label": {nil, func(d *appsv1.Deployment) { delete(d.Labels, inplace.LabelOnStall) }, nil, onlyAsked},
		"the label comes with the write": {nil, func(d *appsv1.Deployment) { delete(d.Labels, inplace.LabelOnStall) },
			func(d *appsv1.Deployment) { d.Labels[inplace.LabelOnStall] = inplace.OnStallUndo }, onlyAsked},
		"another namespace": {&corev1.Namespace{}, nil, nil, onlyAsked},
		"in time": {nil, func(d *appsv1.Deployment) {
			d.Status.Conditions[0].Status, d.Status.Conditions[0].Reason = corev1.ConditionTrue, "ReplicaSetUpdated"
		}, nil, onlyOnce},
		"no condition": {nil, func(d *appsv1.Deployment) { d.Status.Conditions = nil }, nil, onlyOnce},
		"another ReplicaSet has stalled": {nil, func(d *appsv1.Deployment) {
			d.Status.Conditions[0].Message = `ReplicaSet "web-c" has timed out progressing.`
		}, nil, onlyOnce},
		"undone before": {nil, func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{inplace.AnnotationUndone: "web-b"}
		}, nil, noUndo},
		"another one undone before": {nil, func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{inplace.AnnotationUndone: "web-c"}
		}, nil, ""},
		"without a note": {nil, nil, func(d *appsv1.Deployment) { d.Annotations = nil }, noUndo},
		"replicas":       {nil, nil, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) }, "but the template"},
		"a sidecar's image": {nil, nil, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.InitContainers[1].Image = "mesh:1"
		}, ""},
		"an init container's image": {nil, nil, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.InitContainers[0].Image = "setup:2"
		}, takes},
		"amounts": {nil, nil, func(d *appsv1.Deployment) { memory(0, "1Gi")(podOf(d)) }, ""},
		"labels of pods": {nil, nil, func(d *appsv1.Deployment) {
			d.Spec.Template.Labels = map[string]string{"chart": "1"}
		}, ""},
		"a mark": {nil, nil, func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{inplace.AnnotationMove: "{}"}
		}, "no marks"},
		"a command": {nil, nil, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Command = []string{"x"} }, takes},
		"privileges": {nil, nil, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{}
		}, takes},
		"one more container": {nil, nil, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "x", Image: "x"})
		}, takes},
		"the host's network": {nil, nil, func(d *appsv1.Deployment) { d.Spec.Template.Spec.HostNetwork = true }, takes},
		"a service account":  {nil, nil, func(d *appsv1.Deployment) { d.Spec.Template.Spec.ServiceAccountName = "x" }, takes},
		"tolerations": {nil, nil, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, takes},
		"the cause of the change": {nil, nil, func(d *appsv1.Deployment) { d.Annotations["kubernetes.io/change-cause"] = "v1" }, ""},
		"a setting":               {nil, nil, func(d *appsv1.Deployment) { d.Annotations[inplace.AnnotationUpdateLast] = "a=b" }, "belong to a revision"},
		"what was applied": {nil, nil, func(d *appsv1.Deployment) {
			d.Annotations[corev1.LastAppliedConfigAnnotation] = "{}"
		}, "belong to a revision"},
		"a label":     {nil, nil, func(d *appsv1.Deployment) { d.Labels["x"] = "y" }, "metadata of a Deployment"},
		"a finalizer": {nil, nil, func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/stays"} }, "metadata of a Deployment"},
	} {
		t.Run(name, func(t *testing.T) {
			old := stalledDeployment()
			applyTo(old, test.before)
			sent := undoneFrom(old)
			applyTo(sent, test.change)
			in := labelled
			if test.in != nil {
				in = test.in
			}
			refused := cmp.Or(policy.of(old, sent, in, byStayput), others.of(old, sent, in, byStayput))
			if (refused != "") != (test.refused != "") || !strings.Contains(refused, test.refused) {
				t.Errorf("refused with %q, want %q", refused, test.refused)
			}
		})
	}
}

func applyTo(d *appsv1.Deployment, change func(*appsv1.Deployment)) {
	if change != nil {
		change(d)
	}
}

// podOf returns a pod whose containers are those of the template.
func podOf(d *appsv1.Deployment) *corev1.Pod { return &corev1.Pod{Spec: d.Spec.Template.Spec} }

// stalledDeployment returns a Deployment that has exceeded its deadline on the way to ReplicaSet web-b.
func stalledDeployment() *appsv1.Deployment {
	d := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{inplace.LabelOnStall: inplace.OnStallUndo}}}
	d.Spec.Template.Spec = podWithSidecar().Spec
	d.Spec.Template.Spec.Containers[0].Image = "app:2"
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
		Reason: "ProgressDeadlineExceeded", Message: `ReplicaSet "web-b" has timed out progressing. It is waiting for a node.`}}
	return d
}

func undoneFrom(old *appsv1.Deployment) *appsv1.Deployment {
	sent := old.DeepCopy()
	sent.Spec.Template.Spec.Containers[0].Image = "app:1"
	if sent.Annotations == nil {
		sent.Annotations = map[string]string{}
	}
	sent.Annotations[inplace.AnnotationUndone], sent.Annotations[inplace.AnnotationDecision] = "web-b", "in place: restarts app"
	return sent
}
