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

// TestListsAreRejectedByTheRule has lists of annotations rejected at the keyboard exactly where they would count as not there.
func TestListsAreRejectedByTheRule(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-settings")
	long := func(name, count int) string { return strings.Repeat(strings.Repeat("a", name)+",", count-1) + "a" }
	for _, list := range []string{
		"note", "a/b", "example.com/note, other.example.com/*", " a ,\nb/c\t", "Example.COM/A_b.c", "a.b-c/*", long(1, 2000), long(63, 20),
		strings.Repeat("a", 253) + "/a", "kubernetes.io", "notstayput.dev/a", "x.kubernetes.io/*", "kubectl.kubernetes.io/default-container",
		"", ",", "a,", "a,,b", "*", "/*", "/a", "a/", "a*", "a/b*", "a*/*", "a/*/*", "a/b/c", "a b", "-a", "a-", "a..b/c", "a_b/c", "ä", "a/**",
		strings.Repeat("a", 64), strings.Repeat("a", 254) + "/a", long(1, 2050), "a\x00b",
		"stayput.dev/decision", "stayput.dev/*", "a, stayput.dev/any", "kubernetes.io/config.mirror", "kubernetes.io/*",
		"container.apparmor.security.beta.kubernetes.io/app", "container.apparmor.security.beta.kubernetes.io/*",
		"kubectl.kubernetes.io/restartedAt", "kubectl.kubernetes.io/*", "controller.kubernetes.io/*", "controller.kubernetes.io/pod-deletion-cost",
	} {
		workload := &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}}
		before := workload.DeepCopy()
		workload.Annotations = map[string]string{inplace.AnnotationInPlaceAnnotations: list}
		refused := policy.of(before, workload, &corev1.Namespace{}, &user.DefaultInfo{})
		flaw := inplace.Rules{}.For(workload.Annotations).Flaw
		if (refused != "") != (flaw != nil) {
			t.Errorf("%.100q is refused with %q, and the rule says %v", list, refused, flaw)
		}
		if refused != "" && !strings.Contains(refused, "annotation "+inplace.AnnotationInPlaceAnnotations) && !strings.ContainsAny(list, "\n") {
			t.Errorf("%.100q is refused with %q, which does not say what is wrong", list, refused)
		}
		if again := policy.of(workload, workload.DeepCopy(), &corev1.Namespace{}, &user.DefaultInfo{}); again != "" {
			t.Errorf("%.100q is refused again: %s", list, again)
		}
	}
}
