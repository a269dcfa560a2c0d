package cel

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/stayput/stayput/inplace"
)

// TestOnlyStayputWritesMarks checks that other clients can neither add nor change a mark, and may do anything else.
func TestOnlyStayputWritesMarks(t *testing.T) {
	policy := compileRefusals(t, "../base/marks.yaml", "stayput-marks")
	tenant, kubelet := &user.DefaultInfo{Name: "jane"}, &user.DefaultInfo{Name: "system:node:n1", Groups: []string{"system:nodes"}}
	controller := &user.DefaultInfo{Name: "system:serviceaccount:kube-system:deployment-controller"}
	annotations := []string{inplace.AnnotationMove, inplace.AnnotationSurgePod, inplace.AnnotationRestarts, inplace.AnnotationNudged,
		inplace.AnnotationAdmitted, inplace.AnnotationRestarted}
	labels := append([]string{inplace.LabelPrePull}, inplace.Marks...)
	masters := &user.DefaultInfo{Name: "kubernetes-admin", Groups: []string{"system:masters"}}
	for _, kind := range []func(own, template metav1.ObjectMeta) runtime.Object{aPod, aDeployment, aSet} {
		for _, in := range []bool{false, true} {
			try := func(by user.Info, key string, was, is func(key string) metav1.ObjectMeta, refused bool) {
				t.Helper()
				object := func(meta func(string) metav1.ObjectMeta) runtime.Object {
					if in {
						return kind(metav1.ObjectMeta{}, meta(key))
					}
					return kind(meta(key), metav1.ObjectMeta{})
				}
				old, sent := object(was), object(is)
				_, isPod := sent.(*corev1.Pod)
				got := policy.of(old, sent, &corev1.Namespace{}, by)
				refused = refused && !(isPod && in)
				if (got != "") != refused || refused && !strings.Contains(got, key+" is a mark that only Stayput writes") {
					t.Errorf("%T, in its template %t, %s by %s: %q, want refused %t", sent, in, key, by.GetName(), got, refused)
				}
			}
			none := func(string) metav1.ObjectMeta { return metav1.ObjectMeta{} }
			for _, key := range annotations {
				one, other := annotated("1"), annotated("2")
				for _, by := range []user.Info{tenant, kubelet} {
					try(by, key, none, one, true)
					try(by, key, one, other, true)
					try(by, key, one, one, false)
					try(by, key, one, none, false)
					try(by, key, one, annotatedBeside("1"), false)
				}
				try(byStayput, key, none, one, false)
				try(controller, key, none, one, false)
				try(masters, key, none, one, false)
			}
			for _, key := range labels {
				one, other := labelledWith("1"), labelledWith("2")
				try(tenant, key, none, one, true)
				try(tenant, key, one, other, true)
				try(tenant, key, one, one, false)
				try(tenant, key, one, none, false)
				try(byStayput, key, none, one, false)
				try(controller, key, none, one, false)
			}
		}
	}
	marked := aDeployment(metav1.ObjectMeta{}, annotated("1")(inplace.AnnotationMove))
	if got := policy.of(nil, marked, &corev1.Namespace{}, tenant); !strings.Contains(got, inplace.AnnotationMove) {
		t.Errorf("a new template with a mark: %q", got)
	}
	if got := policy.of(nil, aDeployment(metav1.ObjectMeta{}, metav1.ObjectMeta{}), &corev1.Namespace{}, tenant); got != "" {
		t.Errorf("a new template: %q", got)
	}
	binding := &corev1.Binding{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"}, ObjectMeta: annotated("1")(inplace.AnnotationMove)}
	if got := policy.of(nil, binding, &corev1.Namespace{}, tenant); !strings.Contains(got, inplace.AnnotationMove) {
		t.Errorf("a binding with a mark: %q", got)
	}
}

func annotated(value string) func(string) metav1.ObjectMeta {
	return func(key string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{key: value}}
	}
}

func annotatedBeside(value string) func(string) metav1.ObjectMeta {
	return func(key string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{key: value, "note": "x"}, Labels: map[string]string{"tier": "x"}}
	}
}

func labelledWith(value string) func(string) metav1.ObjectMeta {
	return func(key string) metav1.ObjectMeta { return metav1.ObjectMeta{Labels: map[string]string{key: value}} }
}

func aPod(own, _ metav1.ObjectMeta) runtime.Object {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: own}
}

func aDeployment(own, template metav1.ObjectMeta) runtime.Object {
	return &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: own,
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: template}}}
}

func aSet(own, template metav1.ObjectMeta) runtime.Object {
	return &appsv1.ReplicaSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}, ObjectMeta: own,
		Spec: appsv1.ReplicaSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: template}}}
}
