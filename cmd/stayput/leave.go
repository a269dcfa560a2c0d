package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	polling "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/stayput/stayput/controller/rights"
	"github.com/stayput/stayput/controller/shutdown"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
)

const (
	// shutdownPatience bounds the process's shutdown after the webhooks no longer answer.
	shutdownPatience = 8 * time.Second
	// leavePatience bounds leave. With all that comes before, it is less than the 60 s for which the token of a deleted ServiceAccount is
	// valid, and less than the pod's terminationGracePeriodSeconds.
	leavePatience = 25 * time.Second
)

// ownRights are the managers' own rights. Outside of a cluster a manager has no ServiceAccount, and there is nothing to keep.
type ownRights struct {
	rights.Rights
	inCluster bool
}

func newRights(o options) (ownRights, error) {
	config, err := connection()
	if err != nil {
		return ownRights{}, err
	}
	direct, err := clientOver(config)
	if err != nil {
		return ownRights{}, err
	}
	account := cmp.Or(os.Getenv(envAccount), readiness.ServiceAccount)
	own, err := rights.New(direct, config, o.namespace, account)
	return ownRights{own, os.Getenv(envName) != ""}, err
}

// keepRights returns the managers' rights, once they can be taken away only after all updates have fallen back. If Stayput is already being
// removed, it leaves, and returns an error.
func keepRights(ctx context.Context, o options) (ownRights, error) {
	own, err := newRights(o)
	if err != nil || !own.inCluster {
		return own, err
	}
	what, err := own.Removal(ctx)
	if err != nil {
		return own, err
	}
	if what != "" {
		return own, errors.Join(rights.RemovalError(what), leave(ctx, o, own))
	}
	return own, own.Keep(ctx)
}

func (r ownRights) objects() []client.Object {
	if !r.inCluster {
		return nil
	}
	return r.Objects()
}

func (r ownRights) watch(m manager.Manager, end context.CancelCauseFunc) error {
	if !r.inCluster {
		return nil
	}
	return r.Watch(m, end)
}

// ownEnd returns why the process ended itself; nil if it was told to end.
func ownEnd(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.As(cause, new(rights.RemovalError)) {
		return cause
	}
	return nil
}

// shutdownProcess runs after the webhooks no longer answer. If Stayput is being removed, no other manager follows.
func shutdownProcess(ctx context.Context, o options, own ownRights, m manager.Manager) error {
	ctx = context.WithoutCancel(ctx)
	if own.inCluster {
		what, err := own.Removal(ctx)
		if what != "" {
			ctrl.Log.Info("Stayput is being removed: all updates fall back", "because", what)
			return leave(ctx, o, own)
		}
		if err != nil {
			ctrl.Log.Error(err, "It is not known whether Stayput is being removed")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownPatience)
	defer cancel()
	return shutdown.OfProcess(ctx, m.GetClient(), o.reader(m.GetAPIReader()))
}

// leave makes the cluster work without Stayput, as uninstall does. It waits until no manager leads, because a leader would take up the
// updates again. Then it gives up the managers' rights, in any case: objects that cannot be deleted would be worse.
func leave(ctx context.Context, o options, own ownRights) error {
	within, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	led := awaitNoLeader(within, own.Client, o.namespace)
	fellBack := shutdown.Uninstall(within, own.Client, o.reader(own.Client))
	return errors.Join(led, fellBack, own.Release(ctx))
}

// awaitNoLeader waits until no manager holds the Lease any more. A leader that cannot renew it has stopped when it ends.
func awaitNoLeader(ctx context.Context, c client.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, leaseDuration+renewDeadline)
	defer cancel()
	key := types.NamespacedName{Namespace: namespace, Name: inplace.Lease}
	err := polling.PollUntilContextCancel(ctx, lookEvery, true, func(ctx context.Context) (bool, error) {
		lease := &coordinationv1.Lease{}
		err := c.Get(ctx, key, lease)
		return client.IgnoreNotFound(err) == nil && !held(lease.Spec, time.Now()), nil
	})
	if err != nil {
		return fmt.Errorf("wait until no manager leads: %w", err)
	}
	return nil
}

// held reports whether a manager holds the Lease.
func held(lease coordinationv1.LeaseSpec, now time.Time) bool {
	return ptr.Deref(lease.HolderIdentity, "") != "" && lease.RenewTime != nil && now.Before(lease.RenewTime.Add(leaseDuration))
}
