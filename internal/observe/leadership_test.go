package observe

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestTerm(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	renewed := func(ago time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: now.Add(-ago)} }
	for name, test := range map[string]struct {
		holder  *string
		renewed *metav1.MicroTime
		ends    time.Time
		reason  string
	}{
		"it holds a Lease that lasts":  {ptr.To("a"), renewed(3 * time.Second), now.Add(5 * time.Second), ""},
		"its Lease has ended":          {ptr.To("a"), renewed(8 * time.Second), time.Time{}, "the Lease ended at 2026-11-26T12:00:00Z"},
		"another holds the Lease":      {ptr.To("b"), renewed(time.Second), time.Time{}, `"b" holds the Lease, not "a"`},
		"the holder has stepped down":  {ptr.To(""), renewed(time.Second), time.Time{}, `"" holds the Lease, not "a"`},
		"the Lease has not been held":  {nil, nil, time.Time{}, `"" holds the Lease, not "a"`},
		"the Lease has no renewTime":   {ptr.To("a"), nil, time.Time{}, "the Lease has no renewTime"},
		"the local clock was set back": {ptr.To("a"), renewed(-time.Second), now.Add(9 * time.Second), ""},
	} {
		lease := coordinationv1.LeaseSpec{HolderIdentity: test.holder, RenewTime: test.renewed, LeaseDurationSeconds: ptr.To[int32](8)}
		ends, reason := Leadership{Identity: "a"}.term(lease, now)
		if !ends.Equal(test.ends) || reason != test.reason {
			t.Errorf("%s: until %s, %q; want %s, %q", name, ends, reason, test.ends, test.reason)
		}
	}
}
