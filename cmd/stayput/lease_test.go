package main

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// failing is a lock that gets this error.
type failing struct {
	resourcelock.Interface
	with error
}

func (f failing) Update(context.Context, resourcelock.LeaderElectionRecord) error { return f.with }

// answering is a client that gets this error.
type answering struct {
	client.Reader
	with error
}

func (a answering) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return a.with
}

// TestLeaseNotesLostRights: whichever of the managers' rights go first, each manager finds out. A slow API server is no refusal.
func TestLeaseNotesLostRights(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("namespaces"), "own", errors.New("no rule"))
	slow := errors.New("context deadline exceeded")
	for name, test := range map[string]struct {
		before          bool
		lock, namespace error
		want            bool
	}{
		"it has its rights":              {false, nil, nil, false},
		"no right to use the Lease":      {false, forbidden, nil, true},
		"no right of the ClusterRole":    {false, nil, forbidden, true},
		"its account is gone":            {false, apierrors.NewUnauthorized("no account"), nil, true},
		"it has its rights again":        {true, nil, nil, false},
		"a slow API server":              {false, slow, nil, false},
		"a slow API server, and refused": {true, slow, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lease{Interface: failing{with: test.lock}, client: answering{with: test.namespace}, namespace: "own"}
			l.refused.Store(test.before)
			if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{}); !errors.Is(err, test.lock) {
				t.Errorf("the lock says %v", err)
			}
			if got := l.refused.Load(); got != test.want {
				t.Errorf("refused: %t, want %t", got, test.want)
			}
		})
	}
}
