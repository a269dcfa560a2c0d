package cel

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/stayput/stayput/inplace"
)

// TestRestartOnChangeIsRejectedByTheRule checks that the policy rejects exactly the lists that Stayput would ignore.
func TestRestartOnChangeIsRejectedByTheRule(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-restart-on-change")
	following := func(list string) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{inplace.AnnotationRestartOnChange: list}}}
	}
	long := strings.Repeat("a", 253)
	for _, list := range []string{
		"*", " * ", "configmap/a", "configmap/a-b.c", "certificate/web-tls", "configmap/a,certificate/a", " configmap/a ,\tcertificate/a\n",
		"configmap/" + long, "configmap/" + strings.Repeat("a", 62) + "." + strings.Repeat("a", 62), strings.Repeat("configmap/a,", 341) + "*",
		"", " ", ",", "*,*", "*,configmap/a", "configmap/a,*", "configmap/a,", ",configmap/a", "configmap/a,,configmap/b", "a", "configmap", "configmap/",
		"secret/a", "ConfigMap/a", "configmap/A", "configmap/*", "configmap/-a", "configmap/a-", "configmap/a..b", "configmap/.a", "configmap/a.",
		"configmap/a_b", "configmap/a/b", "configmap/a b", "configmap/ä", "configmap/a\nb", "configmap/" + long + "a", "configmap /a",
		strings.Repeat("configmap/a,", 341) + "configmap/a",
	} {
		before, workload := following("*"), following(list)
		if list == "*" {
			before = following("configmap/x")
		}
		refused := policy.of(before, workload, &corev1.Namespace{}, &user.DefaultInfo{})
		if _, err := inplace.RestartOnChangeOf(workload.Annotations); (refused != "") != (err != nil) {
			t.Errorf("%.100q is refused with %q, and ignored: %v", list, refused, err)
		}
		if refused != "" && !strings.ContainsAny(list, "\n\t") && !strings.Contains(refused, "annotation "+inplace.AnnotationRestartOnChange) {
			t.Errorf("%.100q is refused with %q, which does not say what is wrong", list, refused)
		}
		if again := policy.of(workload, workload.DeepCopy(), &corev1.Namespace{}, &user.DefaultInfo{}); again != "" {
			t.Errorf("%.100q is refused again: %s", list, again)
		}
	}
	if refused := policy.of(nil, following("all"), &corev1.Namespace{}, &user.DefaultInfo{}); refused == "" {
		t.Error("a new workload may follow anything")
	}
}

// TestOwnConfiguration checks that Stayput may change nothing of workloads but what a restart needs.
func TestOwnConfiguration(t *testing.T) {
	policy := compileRefusals(t, "../base/own-power.yaml", "stayput-own-configuration")
	managed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{inplace.LabelUpdate: "in-place"}}}
	noted := func(d *appsv1.Deployment) { d.Annotations[inplace.AnnotationConfiguration] = `{"configmap/web":"2"}` }
	restarted := func(d *appsv1.Deployment) {
		noted(d)
		d.Annotations[inplace.AnnotationDecision] = "in place: restarts app"
		d.Spec.Template.Annotations = map[string]string{inplace.AnnotationConfiguration: "1a"}
		d.ResourceVersion, d.Generation = "8", 2
	}
	for name, test := range map[string]struct {
		before, edit func(*appsv1.Deployment)
		namespace    *corev1.Namespace
		why          string
	}{
		"note":    {edit: noted},
		"restart": {edit: restarted},
		"what the API server adds": {edit: func(d *appsv1.Deployment) {
			restarted(d)
			d.Annotations[appsv1.DeprecatedTemplateGeneration] = "2"
		}},
		"unlabelled":         {edit: restarted, namespace: &corev1.Namespace{}, why: "only workloads with the annotation"},
		"not asked for":      {before: func(d *appsv1.Deployment) { d.Annotations = map[string]string{} }, edit: restarted, why: "only workloads with the"},
		"asks for it itself": {before: func(d *appsv1.Deployment) { d.Annotations = nil }, edit: asking, why: "only workloads with the annotation"},
		"an image":           {edit: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil" }, why: "nothing in the spec"},
		"replicas":           {edit: func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32) }, why: "nothing in the spec"},
		"a label of pods":    {edit: func(d *appsv1.Deployment) { d.Spec.Template.Labels = map[string]string{"a": "b"} }, why: "nothing in the spec"},
		"another annotation of pods": {edit: func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"a": "b"} },
			why: "nothing in the spec"},
		"a label":            {edit: func(d *appsv1.Deployment) { d.Labels = map[string]string{"a": "b"} }, why: "nothing in the metadata"},
		"another annotation": {edit: func(d *appsv1.Deployment) { d.Annotations["a"] = "b" }, why: "nothing in the metadata"},
		"no opt-in any more": {edit: func(d *appsv1.Deployment) { delete(d.Annotations, inplace.AnnotationRestartOnChange) },
			why: "nothing in the metadata"},
		"an owner": {edit: func(d *appsv1.Deployment) { d.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, why: "nothing in the metadata"},
	} {
		before := following()
		if test.before != nil {
			test.before(before)
		}
		after, namespace := before.DeepCopy(), managed
		test.edit(after)
		if test.namespace != nil {
			namespace = test.namespace
		}
		why := policy.of(before, after, namespace, byStayput)
		if (why == "") != (test.why == "") || !strings.Contains(why, test.why) {
			t.Errorf("%s: refused with %q, want %q", name, why, test.why)
		}
	}
}

// following returns a Deployment that follows its configuration.
func following() *appsv1.Deployment {
	d := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
	d.ResourceVersion, d.Generation = "7", 1
	asking(d)
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
	return d
}

func asking(d *appsv1.Deployment) {
	d.Annotations = map[string]string{inplace.AnnotationRestartOnChange: "*"}
}
