package controller

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// createsPuller tells whether the step has a node pull images.
func createsPuller(step inplace.Step) bool {
	_, creates := step.(inplace.CreatePuller)
	return creates
}

// createPuller has a name that is derived from target and node, so that a second attempt on a stale cache finds it existing. Somebody
// else's pod of that name is a refusal.
func (w writer) createPuller(ctx context.Context, step inplace.CreatePuller) (write, error) {
	puller := step.Pod.DeepCopy()
	switch err := w.client.Create(ctx, puller, FieldOwner); {
	case apierrors.IsAlreadyExists(err):
		return write{}, w.taken(ctx, puller, err)
	case isRefused(err):
		return write{}, refusal{err}
	default:
		return write{step: step, after: puller}, err
	}
}

func (w writer) deletePuller(ctx context.Context, step inplace.DeletePuller) (write, error) {
	uid, version := step.Pod.UID, step.Pod.ResourceVersion
	err := w.client.Delete(ctx, step.Pod.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version})
	return write{step: step, before: step.Pod, after: step.Pod}, err
}
