package observe

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
)

// HoldPatience is how long after the leader's last sign of life native writes are still held. It bounds how long Stayput can
// delay a rollout that it no longer carries out.
const HoldPatience = 15 * time.Second

// Hold tells whether a living leader stands behind the held writes. Renewals are compared with the local clock: where clocks
// of nodes differ by more than HoldPatience nothing is held and rollouts are native.
type Hold struct {
	client.Reader
	// Namespace is Stayput's own, where the Lease is.
	Namespace string
}

// Alive reads the leader's Lease. A hold that is not alive comes with the reason, as a clause.
func (h Hold) Alive(ctx context.Context) (alive bool, reason string, err error) {
	key := types.NamespacedName{Namespace: h.Namespace, Name: inplace.Lease}
	var lease coordinationv1.Lease
	if err := h.Get(ctx, key, &lease); apierrors.IsNotFound(err) {
		return false, fmt.Sprintf("there is no Lease %s", key), nil
	} else if err != nil {
		return false, "", fmt.Errorf("read Lease %s: %w", key, err)
	}
	alive, reason = renewed(lease.Spec, time.Now())
	return alive, reason, nil
}

// Recorded is what is on record of an update of the workload that was given back.
func (h Hold) Recorded(ctx context.Context, workload types.UID) (revisions.Record, error) {
	if h.Reader == nil {
		return revisions.Record{}, nil
	}
	key := types.NamespacedName{Namespace: h.Namespace, Name: inplace.Lease}
	var lease coordinationv1.Lease
	if err := h.Get(ctx, key, &lease); client.IgnoreNotFound(err) != nil {
		return revisions.Record{}, fmt.Errorf("read Lease %s: %w", key, err)
	}
	return revisions.Records(lease.Annotations).Of(workload), nil
}

// renewed looks at the time alone: a leader that steps down leaves a fresh Lease without a holder
// (client-go/tools/leaderelection: ReleaseOnCancel), which the next one takes within seconds. The hold spans that gap.
func renewed(lease coordinationv1.LeaseSpec, now time.Time) (bool, string) {
	if lease.RenewTime == nil {
		return false, "no leader has held the Lease yet"
	}
	if age := now.Sub(lease.RenewTime.Time); age > HoldPatience {
		return false, fmt.Sprintf("the leader renewed its Lease %s ago, more than %s", age.Round(time.Second), HoldPatience)
	}
	return true, ""
}
