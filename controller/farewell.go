package controller

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/observe"
)

// LastWords is for a manager whose webhooks no longer answer. Managers that are told to go hold writes, and give gates, until then,
// and it may be that none is left to let go and to open: gates that nobody has opened are opened, and the native controllers are woken
// wherever an update is under way. The live reader and the client talk to the API server itself; the context bounds it all.
func LastWords(ctx context.Context, c client.Client, live observe.Reader) error {
	r := releaser{writer: writer{client: c, live: live, memory: &memory{}}, reader: live}
	return errors.Join(r.openNewborns(ctx), r.wake(ctx, deploymentKind, deployments(live)), r.wake(ctx, daemonSetKind, daemonSets(live)))
}

// openNewborns opens the gates that nobody ever did. Another manager may be faster.
func (r releaser) openNewborns(ctx context.Context) error {
	var failed []error
	err := r.eachLabelled(ctx, func(namespace string) error {
		pods := &corev1.PodList{}
		err := r.reader.List(ctx, pods, client.InNamespace(namespace))
		for i := range pods.Items {
			if pod := &pods.Items[i]; waitsForGate(pod) {
				if _, err := r.writer.carry(ctx, inplace.OpenGate(pod, time.Now())); err != nil && !isOutdated(err) {
					failed = append(failed, err)
				}
			}
		}
		return err
	})
	return errors.Join(append(failed, err)...)
}

// wake wakes the native controller for every update under way. If a revision has changed meanwhile, that has woken it.
func (r releaser) wake(ctx context.Context, kind kind, read source) error {
	workloads, err := r.underWay(ctx, kind)
	for workload := range workloads {
		rollout, readErr := read(ctx, workload)
		if rollout != nil {
			err = errors.Join(err, r.writer.carryOut(ctx, workload, rollout.Wake()).err)
		}
		err = errors.Join(err, readErr)
	}
	return err
}

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
		if !inplace.Closed(pod) || pod.DeletionTimestamp != nil {
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
