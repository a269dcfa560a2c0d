package apps

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// TestQuantityEqualsAsNatively writes amounts in many spellings, and compares canonicalQuantity with resource.Quantity.
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

func TestBoundedQuantity(t *testing.T) {
	for text, bounded := range map[string]bool{
		strings.Repeat("1", longestQuantity): true, strings.Repeat("1", longestQuantity+1): false,
		strings.Repeat("1", longestQuantity-1) + "E": true, strings.Repeat("1", longestQuantity) + "E": false,
		fmt.Sprint("1e", largestExponent): true, fmt.Sprint("1e", largestExponent+1): false,
		fmt.Sprint("1E-", largestExponent): true, fmt.Sprint("1E-", largestExponent+1): false,
		"1E": true, "1Ei": true, "512": true, "": true,
	} {
		if got := boundedQuantity(text); got != bounded {
			t.Errorf("%q is bounded: %t", text, got)
		}
	}
}

// spelling returns one of a few amounts, or an amount near the bounds of rounding and capping, in one of many spellings.
func spelling(random *rand.Rand) string {
	pick := func(from ...string) string { return from[random.Intn(len(from))] }
	number := pick("0", "00", ".", "1", "01", "1.", "1.0", "1.000", ".5", "0.5", "1.5", "512", "1000", "1024", "2048", "1000000", "1048576",
		"8", "9",
		"9223372036854775807", "9223372036854775808", "0.0000000001", "0.1", "0.00000000050", "123456789012345678901234567890")
	suffix := pick("", "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E3", "e+3", "e-3", "e6",
		"e-9", "e-10", "e0", "e03", "e18")
	return pick("", "", "", "+", "-") + number + suffix
}
