package write

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/steps"
)

// CreatesPrePullPod reports whether the step has a node pull images.
func CreatesPrePullPod(step steps.Step) bool {
	_, creates := step.(steps.CreatePrePullPod)
	return creates
}

// createPrePullPod has a name that is derived from target and node, so that a second attempt on a stale cache finds it existing. Somebody
// else's pod of that name is a refusal.
func (w Writer) createPrePullPod(ctx context.Context, step steps.CreatePrePullPod) (Done, error) {
	prePullPod := step.Pod.DeepCopy()
	switch err := w.Client.Create(ctx, prePullPod, FieldOwner); {
	case apierrors.IsAlreadyExists(err):
		return Done{}, w.taken(ctx, prePullPod, err)
	case IsRefused(err):
		return Done{}, Refusal{err}
	default:
		return Done{Step: step, After: prePullPod}, err
	}
}

func (w Writer) deletePrePullPod(ctx context.Context, step steps.DeletePrePullPod) (Done, error) {
	uid, version := step.Pod.UID, step.Pod.ResourceVersion
	err := w.Client.Delete(ctx, step.Pod.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version})
	return Done{Step: step, Before: step.Pod, After: step.Pod}, err
}
