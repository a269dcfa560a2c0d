package edit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/internal/sample"
)

// limited returns the base template with a memory limit.
func limited(t *testing.T, memory string) apps.Template {
	t.Helper()
	raw := strings.Replace(sample.Template, `"memory": "1Gi"`, fmt.Sprintf(`"memory": %q`, memory), 1)
	var template apps.Template
	if err := json.Unmarshal([]byte(raw), &template); err != nil {
		t.Fatal(err)
	}
	return template
}

// TestQuantityIsNotExpanded uses quantities whose digits would take a manager minutes to write out. All but the first few would
// take hours.
func TestQuantityIsNotExpanded(t *testing.T) {
	for name, memory := range map[string]string{
		"exponent": "1e300000", "another": "1e1000000", "far": "1e30000000", "farthest": "1e2147483647", "tiny": "1e-30000000",
		"unrounded": "1234567890123456789012e300000", "digits": strings.Repeat("7", 1<<20), "fraction": "0." + strings.Repeat("7", 1<<20),
		"zeros": "1" + strings.Repeat("0", 1<<20), "binary": strings.Repeat("7", 1<<20) + "Ei",
	} {
		template := limited(t, memory)
		limits := apps.Object(containers(template.Canonical(), containersList)[0], "resources", "limits")
		if got := fmt.Sprint(limits["memory"]); len(got) > len(memory) {
			t.Errorf("%s: %d characters became %d", name, len(memory), len(got))
		}
		if !apps.SameTemplate(template, limited(t, memory)) || !Compare(template, template, inplace.Rules{}).None() {
			t.Errorf("%s: a template differs from itself", name)
		}
		if apps.SameTemplate(template, limited(t, "1Gi")) || Compare(limited(t, "1Gi"), template, inplace.Rules{}).InPlace() {
			t.Errorf("%s: is the same as 1Gi", name)
		}
	}
}

func TestQuantitySpellings(t *testing.T) {
	for _, same := range [][2]string{{"1", "1000m"}, {"1Ki", "1024"}, {"0.5Gi", "512Mi"}, {"1e3", "1k"}, {"-0", "0"}, {"1.10", "1.1"},
		{" 1 ", "1"}} {
		if !apps.SameTemplate(limited(t, same[0]), limited(t, same[1])) {
			t.Errorf("%q is not %q", same[0], same[1])
		}
	}
}
