package main

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stayput/stayput/controller/rights"
)

func TestHeld(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	renewed := func(ago time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: now.Add(-ago)} }
	for name, test := range map[string]struct {
		lease coordinationv1.LeaseSpec
		want  bool
	}{
		"a leader renews it":      {coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a"), RenewTime: renewed(time.Second)}, true},
		"a leader stepped down":   {coordinationv1.LeaseSpec{HolderIdentity: ptr.To(""), RenewTime: renewed(time.Second)}, false},
		"a leader was killed":     {coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a"), RenewTime: renewed(leaseDuration)}, false},
		"no leader ever held it":  {coordinationv1.LeaseSpec{}, false},
		"a holder never renewed ": {coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a")}, false},
	} {
		if got := held(test.lease, now); got != test.want {
			t.Errorf("%s: held %t", name, got)
		}
	}
}

func TestOwnEnd(t *testing.T) {
	for cause, want := range map[error]string{
		nil:                                 "",
		rights.RemovalError("Role is gone"): "Stayput is being removed: Role is gone",
	} {
		ctx, end := context.WithCancelCause(t.Context())
		end(cause)
		got := ""
		if err := ownEnd(ctx); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("ended by %v, it says %q", cause, got)
		}
	}
}
