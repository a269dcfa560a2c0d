package daemonsets_test

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestNewPodOfATemplateThatDoesNotDecode: a newer API server may store a toleration that Stayput's types cannot represent. The new pod has
// the template's tolerations as they are, and the manager does not end.
func TestNewPodOfATemplateThatDoesNotDecode(t *testing.T) {
	f := fixture.NewFleet(t, 1)
	if err := json.Unmarshal([]byte(`{"spec":{"containers":[{"name":"app","image":"v2"}],"tolerations":[
		{"key":"dedicated","operator":"Exists"},{"key":"newer","tolerationSeconds":"60s"}]}}`), &f.DaemonSet.Spec.Template); err != nil {
		t.Fatal(err)
	}
	if f.DaemonSet.Spec.Template.Unsupported() == nil {
		t.Fatal("the template decodes")
	}
	var made struct {
		Spec struct{ Tolerations []struct{ Key string } }
	}
	if err := json.Unmarshal(f.Kind.NewPod(f.Revisions[0], f.Seen.Pods[0]), &made); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, toleration := range made.Spec.Tolerations {
		keys = append(keys, toleration.Key)
	}
	for _, want := range []string{"dedicated", "newer", corev1.TaintNodeUnschedulable} {
		if !slices.Contains(keys, want) {
			t.Errorf("the new pod tolerates %q, not %s", keys, want)
		}
	}
}
