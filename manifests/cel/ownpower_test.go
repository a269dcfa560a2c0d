package cel

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// TestTolerationsOnlyGrow by our own hand, and only where the namespace has its label.
func TestTolerationsOnlyGrow(t *testing.T) {
	policy := compileRefusals(t, "../base/own-power.yaml", "stayput-own-pods")
	us := &user.DefaultInfo{Name: "system:serviceaccount:stayput-system:stayput"}
	labelled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"stayput.dev/update": "in-place"}}}
	one, other := corev1.Toleration{Key: "one", Operator: corev1.TolerationOpExists}, corev1.Toleration{Key: "other", Effect: corev1.TaintEffectNoExecute}
	longer := other
	longer.TolerationSeconds = new(int64(7))
	for name, test := range map[string]struct {
		from, to []corev1.Toleration
		in       *corev1.Namespace
		refused  bool
	}{
		"the first":             {nil, []corev1.Toleration{one}, labelled, false},
		"one more":              {[]corev1.Toleration{one}, []corev1.Toleration{one, other}, labelled, false},
		"one before":            {[]corev1.Toleration{one}, []corev1.Toleration{other, one}, labelled, false},
		"none":                  {[]corev1.Toleration{one}, []corev1.Toleration{one}, &corev1.Namespace{}, false},
		"for longer":            {[]corev1.Toleration{other}, []corev1.Toleration{longer}, labelled, true},
		"instead":               {[]corev1.Toleration{one}, []corev1.Toleration{other}, labelled, true},
		"none any more":         {[]corev1.Toleration{one}, nil, labelled, true},
		"one without the label": {[]corev1.Toleration{one}, []corev1.Toleration{one, other}, &corev1.Namespace{}, true},
	} {
		old := ownedPod()
		sent := old.DeepCopy()
		old.Spec.Tolerations, sent.Spec.Tolerations = test.from, test.to
		if refused := policy.of(old, sent, test.in, us); (refused != "") != test.refused || test.refused && !strings.Contains(refused, "only adds to the tolerations") {
			t.Errorf("%s: refused with %q", name, refused)
		}
	}
	hostile := ownedPod()
	hostile.Spec.HostNetwork = true
	if policy.of(ownedPod(), hostile, labelled, us) == "" {
		t.Error("another field of the spec may change")
	}
}

// ownedPod is one of a ReplicaSet, with a mark of ours.
func ownedPod() *corev1.Pod {
	controls := true
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}}}
	pod.Annotations = map[string]string{"stayput.dev/borrowed": "true"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "r", Controller: &controls}}
	return pod
}
