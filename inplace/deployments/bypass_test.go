package deployments

import (
	"testing"
	"time"

	"github.com/stayput/stayput/inplace"
)

// TestBypass: a single bypass is tolerated once it is clear that it was single. The next one, while that one is remembered, is too many.
func TestBypass(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, test := range map[string]struct {
		bypass             bypass
		known, again, over bool
		wait               time.Duration
	}{
		"none":                           {bypass{}, false, false, true, 0},
		"the first, not noted yet":       {bypass{seen: true}, false, false, false, 0},
		"just noted":                     {bypass{noted: now, seen: true}, true, false, false, QuietAfterBypass},
		"noted, and taken back":          {bypass{noted: ago(time.Second)}, true, false, false, QuietAfterBypass - time.Second},
		"it was single":                  {bypass{noted: ago(QuietAfterBypass)}, true, false, true, 0},
		"it was not":                     {bypass{noted: ago(QuietAfterBypass), seen: true}, true, true, false, 0},
		"the one before it is forgotten": {bypass{noted: ago(inplace.Remembered), seen: true}, false, false, false, 0},
	} {
		b := test.bypass
		b.now = now
		over, wait := b.over()
		if b.known() != test.known || b.again() != test.again || over != test.over || wait != test.wait {
			t.Errorf("%s: known %t, again %t, over %t in %s", name, b.known(), b.again(), over, wait)
		}
	}
}
