package write

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/steps"
)

// CreatesPrePullPod reports whether the step creates a pre-pull pod.
func CreatesPrePullPod(step steps.Step) bool {
	_, creates := step.(steps.CreatePrePullPod)
	return creates
}

// createPrePullPod creates a pre-pull pod. The pod's name is derived from the update revision and the node. So a second
// attempt on an outdated cache finds that the pod exists. If the existing pod is not a pre-pull pod of the same
// workload, that is a refusal.
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
