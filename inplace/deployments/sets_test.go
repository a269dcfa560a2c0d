package deployments_test

import (
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestFallbackIsPersistedOnlyWhereItEndsAHold: every pod has the update revision when the update falls back. The fallback is persisted if a
// mark still holds the deletion of a pod. Where nothing is held, the native controllers have nothing to do, and need no nudges.
func TestFallbackIsPersistedOnlyWhereItEndsAHold(t *testing.T) {
	for name, test := range map[string]struct {
		marked bool
		size   int32
		want   bool
	}{
		"a pod too many, and a mark":          {true, 1, true},
		"a mark alone":                        {true, 2, false},
		"a pod too many, and nothing held":    {false, 1, false},
		"nothing is left of an update at all": {false, 2, false},
	} {
		r := fixture.New(test.size, fixture.App{Image: "v1"})
		rs := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, test.size)
		if test.marked {
			rs.Labels[inplace.LabelUpdating] = fixture.Begun
		}
		fixture.PodOf(r, "p", rs)
		fixture.PodOf(r, "q", rs)
		if _, is := persistedFallback(r.FallBack(inplace.Reason{Code: inplace.CodeRefused})); is != test.want {
			t.Errorf("%s: it is persisted: %t", name, is)
		}
	}
}
