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

// listing is a workload with that list of containers that nobody waits for.
func listing(list string) *appsv1.DaemonSet {
	workload := &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}}
	workload.Annotations = map[string]string{inplace.AnnotationAuxiliary: list}
	workload.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app"}, {Name: "shipper"}}
	workload.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "mesh"}}
	return workload
}

// TestAuxiliaryIsRejectedByTheRule has lists rejected at the keyboard exactly where they would count as none.
func TestAuxiliaryIsRejectedByTheRule(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-auxiliary")
	for _, list := range []string{
		"shipper", "shipper,metrics", " shipper ,\tmetrics\n", "a", "1", "a-1", strings.Repeat("a", 63), strings.Repeat("a,", 2047) + "a",
		"", " ", ",", "shipper,", ",shipper", "shipper,,metrics", "*", "shipper,*", "Shipper", "-a", "a-", "a.b", "a_b", "a b", "ä", "a\nb", "a\x00",
		strings.Repeat("a", 64), strings.Repeat("a,", 2048) + "a",
	} {
		before, workload := listing("app"), listing(list)
		refused := policy.of(before, workload, &corev1.Namespace{}, &user.DefaultInfo{})
		if none := inplace.AuxiliaryOf(workload.Annotations) == nil; (refused != "") != none {
			t.Errorf("%.100q is refused with %q, and counts as none: %t", list, refused, none)
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
			t.Errorf("%q: told %q, want %q", list, told, want)
		}
	}
}
