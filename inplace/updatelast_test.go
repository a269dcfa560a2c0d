package inplace

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUpdateLast(t *testing.T) {
	leader := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"role": "leader", "example.com/zone": "a"}}}
	for selector, has := range map[string]bool{
		"role=leader": true, "role == leader": true, "role": true, "role in (leader, standby)": true, "example.com/zone=a": true,
		" role=leader , example.com/zone!=b ": true, "role notin (standby)": true, "!absent": true, "! absent": true,
		"role=standby": false, "role!=leader": false, "!role": false, "absent": false, "role=leader,absent": false,
	} {
		last := UpdateLastOf(map[string]string{AnnotationUpdateLast: selector})
		if last.None() || last.Has(leader) != has {
			t.Errorf("%q: none %t, it has the pod: %t", selector, last.None(), last.Has(leader))
		}
	}
	for _, selector := range []string{"", " ", ",", "role=", "=leader", "role=leader,", "role in leader", "role in ()", "role=a b", "!role=a",
		"*", "role>1", "Example.com/a=b", "role=" + strings.Repeat("a", 64), strings.Repeat("a,", 125) + "a"} {
		if last := UpdateLastOf(map[string]string{AnnotationUpdateLast: selector}); !last.None() || last.Has(leader) {
			t.Errorf("%q is read", selector)
		}
	}
	if !UpdateLastOf(nil).None() {
		t.Error("without an annotation some pods go last")
	}
}
