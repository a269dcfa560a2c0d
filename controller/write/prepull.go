package write

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/steps"
)

// CreatesPrePullPod reports whether the step creates a pre-pull pod.
func CreatesPrePullPod(step steps.Step) bool {
	_, creates := step.(steps.CreatePrePullPod)
	return creates
}

func (w Writer) deletePrePullPod(ctx context.Context, step steps.DeletePrePullPod) (Done, error) {
	uid, version := step.Pod.UID, step.Pod.ResourceVersion
	err := w.Client.Delete(ctx, step.Pod.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version})
	return Done{Step: step, Before: step.Pod, After: step.Pod}, err
}
