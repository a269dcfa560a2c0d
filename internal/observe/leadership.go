package observe

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Leadership reads whether this process is still the leader. A process that was stopped for a while may go on in the
// middle of a reconcile while another process leads (client-go/tools/leaderelection has no fencing).
//
// It may read a cache. A cache that lags shows an earlier renewal, and so an earlier end: no other process is elected before the end of any
// renewal that this process has made. It steps down by itself only when its controllers have ended.
type Leadership struct {
	client.Reader
	// Namespace is Stayput's own namespace. The Lease is there.
	Namespace string
	// Identity is the holder that this process writes into the Lease.
	Identity string
}

// Ends reads the Lease and returns when it ends if it is not renewed. No other process is elected before that. If this
// process does not lead, the reason says why, as a clause.
func (l Leadership) Ends(ctx context.Context) (ends time.Time, reason string, err error) {
	lease, err := leaseIn(ctx, l.Reader, l.Namespace)
	if err != nil {
		return time.Time{}, "", err
	}
	ends, reason = l.term(lease, time.Now())
	return ends, reason, nil
}

// term returns when the Lease ends. It compares the local clock only with a time that this process itself has written.
// Other processes wait for the Lease's duration from the moment they saw the renewal, which is later.
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
