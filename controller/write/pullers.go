package write

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/steps"
)

// CreatesPuller tells whether the step has a node pull images.
func CreatesPuller(step steps.Step) bool {
	_, creates := step.(steps.CreatePuller)
	return creates
}

// createPuller has a name that is derived from target and node, so that a second attempt on a stale cache finds it existing. Somebody
// else's pod of that name is a refusal.
func (w Writer) createPuller(ctx context.Context, step steps.CreatePuller) (Done, error) {
	puller := step.Pod.DeepCopy()
	switch err := w.Client.Create(ctx, puller, FieldOwner); {
	case apierrors.IsAlreadyExists(err):
		return Done{}, w.taken(ctx, puller, err)
	case IsRefused(err):
		return Done{}, Refusal{err}
	default:
		return Done{Step: step, After: puller}, err
	}
}

func (w Writer) deletePuller(ctx context.Context, step steps.DeletePuller) (Done, error) {
	uid, version := step.Pod.UID, step.Pod.ResourceVersion
	err := w.Client.Delete(ctx, step.Pod.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version})
	return Done{Step: step, Before: step.Pod, After: step.Pod}, err
}
