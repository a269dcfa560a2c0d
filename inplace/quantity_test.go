package inplace

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// limited is the base template with a memory limit.
func limited(t *testing.T, memory string) Template {
	t.Helper()
	raw := strings.Replace(baseTemplate, `"memory": "1Gi"`, fmt.Sprintf(`"memory": %q`, memory), 1)
	var template Template
	if err := json.Unmarshal([]byte(raw), &template); err != nil {
		t.Fatal(err)
	}
	return template
}

// TestQuantityIsNotExpanded has quantities whose digits would keep a manager busy for minutes, all but the first few of them for hours.
func TestQuantityIsNotExpanded(t *testing.T) {
	for name, memory := range map[string]string{
		"exponent": "1e300000", "another": "1e1000000", "far": "1e30000000", "farthest": "1e2147483647", "tiny": "1e-30000000",
		"unrounded": "1234567890123456789012e300000", "digits": strings.Repeat("7", 1<<20), "fraction": "0." + strings.Repeat("7", 1<<20),
		"zeros": "1" + strings.Repeat("0", 1<<20), "binary": strings.Repeat("7", 1<<20) + "Ei",
	} {
		template := limited(t, memory)
		limits := object(containers(template.canonical())[0], "resources", "limits")
		if got := fmt.Sprint(limits["memory"]); len(got) > len(memory) {
			t.Errorf("%s: %d characters became %d", name, len(memory), len(got))
		}
		if !SameTemplate(template, limited(t, memory)) || !Compare(template, template, Rules{}).None() {
			t.Errorf("%s: a template differs from itself", name)
		}
		if SameTemplate(template, limited(t, "1Gi")) || Compare(limited(t, "1Gi"), template, Rules{}).InPlace() {
			t.Errorf("%s: is the same as 1Gi", name)
		}
	}
}

// TestQuantityEqualsAsNatively writes amounts in many ways and asks both.
func TestQuantityEqualsAsNatively(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	equal := 0
	for range 100_000 {
		a, b := spelling(random), spelling(random)
		p, errA := resource.ParseQuantity(a)
		q, errB := resource.ParseQuantity(b)
		if errA != nil || errB != nil {
			continue // too many digits for its unit
		}
		want := p.Cmp(q) == 0
		if got := canonicalQuantity(a) == canonicalQuantity(b); got != want {
			t.Fatalf("%s and %s are the same: %t, natively %t", a, b, got, want)
		}
		if want {
			equal++
		}
	}
	if equal < 1000 {
		t.Errorf("%d equal ones prove little", equal)
	}
}

// spelling writes one of a few amounts, or one near the bounds of what is rounded or capped, in one of many ways.
func spelling(random *rand.Rand) string {
	pick := func(from ...string) string { return from[random.Intn(len(from))] }
	number := pick("0", "00", ".", "1", "01", "1.", "1.0", "1.000", ".5", "0.5", "1.5", "512", "1000", "1024", "2048", "1000000", "1048576", "8", "9",
		"9223372036854775807", "9223372036854775808", "0.0000000001", "0.1", "0.00000000050", "123456789012345678901234567890")
	suffix := pick("", "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E3", "e+3", "e-3", "e6", "e-9", "e-10", "e0", "e03", "e18")
	return pick("", "", "", "+", "-") + number + suffix
}

func TestQuantitySpellings(t *testing.T) {
	for _, same := range [][2]string{{"1", "1000m"}, {"1Ki", "1024"}, {"0.5Gi", "512Mi"}, {"1e3", "1k"}, {"-0", "0"}, {"1.10", "1.1"}, {" 1 ", "1"}} {
		if !SameTemplate(limited(t, same[0]), limited(t, same[1])) {
			t.Errorf("%q is not %q", same[0], same[1])
		}
	}
}
