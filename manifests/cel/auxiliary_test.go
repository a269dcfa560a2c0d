package cel

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
)

// listing returns a workload with that list of auxiliary containers.
func listing(list string) *appsv1.DaemonSet {
	workload := &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}}
	workload.Annotations = map[string]string{inplace.AnnotationAuxiliary: list}
	workload.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app"}, {Name: "shipper"}}
	workload.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "mesh"}}
	return workload
}

// TestAuxiliaryIsRejectedByTheRule checks that the policy rejects exactly the lists that Stayput would ignore.
func TestAuxiliaryIsRejectedByTheRule(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-settings")
	for _, list := range []string{
		"shipper", "shipper,metrics", " shipper ,\tmetrics\n", "a", "1", "a-1", strings.Repeat("a", 63), strings.Repeat("a,", 2047) + "a",
		"", " ", ",", "shipper,", ",shipper", "shipper,,metrics", "*", "shipper,*", "Shipper", "-a", "a-", "a.b", "a_b", "a b", "ä", "a\nb",
		"a\x00", strings.Repeat("a", 64), strings.Repeat("a,", 2048) + "a",
	} {
		before, workload := listing("app"), listing(list)
		refused := policy.of(before, workload, &corev1.Namespace{}, &user.DefaultInfo{})
		if none := inplace.AuxiliaryOf(workload.Annotations) == nil; (refused != "") != none {
			t.Errorf("%.100q is refused with %q, and ignored: %t", list, refused, none)
		}
		if refused != "" && !strings.ContainsAny(list, "\n\x00") && !strings.Contains(refused, "annotation "+inplace.AnnotationAuxiliary) {
			t.Errorf("%.100q is refused with %q, which does not say what is wrong", list, refused)
		}
		if again := policy.of(workload, workload.DeepCopy(), &corev1.Namespace{}, &user.DefaultInfo{}); again != "" {
			t.Errorf("%.100q is refused again: %s", list, again)
		}
	}
	if refused := policy.of(nil, listing("*"), &corev1.Namespace{}, &user.DefaultInfo{}); refused == "" {
		t.Error("a new workload may list anything")
	}
}

func TestUnknownContainersAreTold(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-auxiliary-names")
	for list, want := range map[string]string{"shipper": "", "shipper, mesh": "", "ghost": "ghost", "shipper, ghost,wraith": "ghost, wraith"} {
		told := policy.of(nil, listing(list), &corev1.Namespace{}, &user.DefaultInfo{})
		if want == "" && told != "" || want != "" && !strings.HasSuffix(told, "no container "+want) {
			t.Errorf("%q: the warning is %q, want %q", list, told, want)
		}
	}
}

// TestPartiallyPatchedPodsMayGoBack checks that a partially patched pod may get its old image again in a namespace without the label, and
// that another pod may not.
func TestPartiallyPatchedPodsMayGoBack(t *testing.T) {
	policy := compileRefusals(t, "../base/own-power.yaml", "stayput-own-pods")
	for hash, refused := range map[string]bool{"new": false, "old": true} {
		move := readiness.Move{Hash: hash, Generation: 2, Containers: map[string]readiness.MovedContainer{"shipper": {Image: "v2"}},
			Back: map[string]string{"shipper": "v1"}}
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
		pod.Labels = map[string]string{inplace.LabelTemplateHash: "old"}
		pod.Annotations = map[string]string{inplace.AnnotationMove: move.String()}
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-old", UID: "u", Controller: new(true)}}
		pod.Spec.Containers = []corev1.Container{{Name: "shipper", Image: "v2"}}
		back := pod.DeepCopy()
		back.Spec.Containers[0].Image = "v1"
		if why := policy.of(pod, back, &corev1.Namespace{}, byStayput); (why != "") != refused {
			t.Errorf("a pod of revision old whose mark names revision %s: refused with %q", hash, why)
		}
	}
}
