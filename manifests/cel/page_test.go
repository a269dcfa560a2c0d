package cel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/stayput/stayput/inplace"
)

// TestPolicyOfThePage checks the policy that docs/how-to/policies.md shows: it leaves alone what Stayput creates to pull images, and no other
// request about a pod with that label.
func TestPolicyOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```yaml\n")
	shown, _, _ := strings.Cut(after, "```")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(shown), 0o600); err != nil {
		t.Fatal(err)
	}
	policy := compileRefusals(t, file, "images-from-our-registry")
	jane, pod := &user.DefaultInfo{Name: "jane"}, newPrePullPod()
	changed, two, plain := pod.DeepCopy(), pod.DeepCopy(), pod.DeepCopy()
	changed.Spec.Containers[0].Image = "elsewhere/app:9"
	two.Spec.Containers = append(two.Spec.Containers, corev1.Container{Name: "app", Image: "elsewhere/app:9"})
	delete(plain.Labels, inplace.LabelPrePull)
	for name, test := range map[string]struct {
		got     string
		refused bool
	}{
		"a pre-pull pod":         {policy.of(nil, pod, labelled, byStayput), false},
		"the same by a user":     {policy.of(nil, pod, labelled, jane), true},
		"without the label":      {policy.of(nil, plain, labelled, byStayput), true},
		"a dry run":              {policy.ofDryRun(nil, pod, labelled, byStayput), true},
		"two containers":         {policy.of(nil, two, labelled, byStayput), true},
		"a patch":                {policy.of(pod, changed, labelled, byStayput), true},
		"a patch that tries":     {policy.ofDryRun(pod, changed, labelled, byStayput), true},
		"a patch without images": {policy.of(pod, pod, labelled, byStayput), true},
	} {
		if (test.got != "") != test.refused {
			t.Errorf("%s: %q, want refused %t", name, test.got, test.refused)
		}
	}
}
