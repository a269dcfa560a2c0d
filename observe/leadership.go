package observe

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Leadership reports whether this process still is the leader. A process that was stopped for a while may go on in the middle of a reconcile, while
// another leads (client-go/tools/leaderelection has no fencing).
type Leadership struct {
	// Reader reads the API server itself.
	client.Reader
	// Namespace is Stayput's own, where the Lease is.
	Namespace string
	// Identity is what this process writes into the Lease as its holder.
	Identity string
}

// Ends reads the Lease, and returns when it ends unless it is renewed: until then no other process is elected. A process that does not lead gets the
// reason, as a clause.
func (l Leadership) Ends(ctx context.Context) (ends time.Time, reason string, err error) {
	lease, err := leaseIn(ctx, l.Reader, l.Namespace)
	if err != nil {
		return time.Time{}, "", err
	}
	ends, reason = l.term(lease, time.Now())
	return ends, reason, nil
}

// term compares the local clock only with what this process itself has written. Others wait for the Lease's duration from when they saw it, which is later.
func (l Leadership) term(lease coordinationv1.LeaseSpec, now time.Time) (ends time.Time, reason string) {
	if holder := ptr.Deref(lease.HolderIdentity, ""); holder != l.Identity {
		return time.Time{}, fmt.Sprintf("%q holds the Lease, not %q", holder, l.Identity)
	}
	if lease.RenewTime == nil {
		return time.Time{}, "the Lease has no renewTime"
	}
	ends = lease.RenewTime.Add(time.Duration(ptr.Deref(lease.LeaseDurationSeconds, 0)) * time.Second)
	if !now.Before(ends) {
		return time.Time{}, fmt.Sprintf("the Lease ended at %s", ends.Format(time.RFC3339))
	}
	return ends, ""
}
