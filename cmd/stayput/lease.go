package main

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lease is the lock of the leader election, which every manager looks at every few seconds. By that it also finds out whether this manager
// still has its rights. Without them no leader can carry out an update or end a hold, so nothing may be held any more (observe.Hold).
type lease struct {
	resourcelock.Interface
	client    client.Reader
	namespace string
	refused   atomic.Bool
}

// Get implements resourcelock.Interface.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	l.note(ctx, err)
	return record, raw, err
}

// Update implements resourcelock.Interface.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, record)
	l.note(ctx, err)
	return err
}

// note notes whether the API server refuses what the Role or the ClusterRole allow.
func (l *lease) note(ctx context.Context, err error) {
	if err == nil {
		err = l.client.Get(ctx, client.ObjectKey{Name: l.namespace}, &corev1.Namespace{})
	}
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		l.refused.Store(true)
	case err == nil:
		l.refused.Store(false)
	}
}
