package webhook

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/internal/observe"
)

// The users of the native controllers of Deployments and of ReplicaSets.
var (
	deploymentController = inplace.NativeController("deployment-controller")
	replicaSetController = observe.Deployments.PodsBy
)

// kindBy returns the kind of workload whose native controller deletes the object.
func kindBy(req admission.Request) observe.Kind {
	return observe.Kinds[slices.IndexFunc(observe.Kinds, func(kind observe.Kind) bool { return kind.PodsBy == req.UserInfo.Username })]
}

// decide decides what the edit of a template of that kind will do.
func (s Sources) decide(ctx context.Context, kind observe.Kind, req admission.Request, before *workload) (editDecision, error) {
	if kind.Of == nil {
		return s.decideDeployment(ctx, req, before)
	}
	return s.decideRevised(ctx, kind, req, before)
}

// refusePod returns the error with which a deletion of the pod by the kind's native controller is refused; nil if the pod does not stay.
func (h Handlers) refusePod(ctx context.Context, kind observe.Kind, pod *corev1.Pod) (refusal, error) {
	if kind.Of == nil {
		return h.refuseUpdating(ctx, pod)
	}
	return h.refuseControlled(ctx, kind, pod)
}

// futile returns a function that reports whether the kind's native controller achieves nothing by deleting the pod: see throttle.go.
func (h Handlers) futile(kind observe.Kind, pod *corev1.Pod) func(context.Context) bool {
	if kind.Of == nil {
		return h.surplusPasses(pod)
	}
	return h.sameState(kind, pod)
}

// throttledByUser returns how long, and about how many objects at a time, each native controller waits for answers.
func throttledByUser() map[string]*throttled {
	by := map[string]*throttled{deploymentController: newThrottled(throttle, 1)}
	for _, kind := range observe.Kinds {
		longest, objects := throttle, 1
		if kind.FewWorkers {
			longest = throttleFew
		}
		if kind.Of == nil {
			objects = throttleTwo
		}
		by[kind.PodsBy] = newThrottled(longest, objects)
	}
	return by
}
