package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

const (
	// farewellPatience is how long a leader that is going waits for kubelets to act on its last patches. Twice what they take.
	farewellPatience = 8 * time.Second
	// farewellEvery lets writes that were under way when the leader was told to go arrive first.
	farewellEvery = 250 * time.Millisecond
)

// farewell opens the gates that the leader has closed before it goes. If another manager follows, it drains the pods again
// that were not patched yet; if none does, no pod is left out of service for ever and the native controller can finish.
type farewell struct {
	cached client.Reader
	writer writer
}

// NeedLeaderElection tells the manager to run it on the leader, and to stop it before the Lease is handed over.
func (*farewell) NeedLeaderElection() bool { return true }

// Start waits until the leader is told to go.
func (f *farewell) Start(ctx context.Context) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewellPatience)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, farewellEvery, false, f.open)
}

// open opens what may be opened now; done when no gate is closed any more.
func (f *farewell) open(ctx context.Context) (done bool, err error) {
	list := &corev1.PodList{}
	if err := f.cached.List(ctx, list); err != nil {
		return false, err
	}
	done = true
	for i := range list.Items {
		pod := &list.Items[i]
		if !isGated(pod) || !isClosed(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		done = false
		if step, may := inplace.Reopen(pod, time.Now()); may {
			if _, err := f.writer.carry(ctx, step); err != nil && !isOutdated(err) {
				return false, err
			}
		}
	}
	return done, nil
}
