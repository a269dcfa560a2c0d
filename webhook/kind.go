package webhook

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/internal/observe"
)

// kind is what the webhooks do for one kind of workload. The users whose writes are held exist only under kube-controller-manager
// --use-service-account-credentials. Without that flag Stayput holds no write, and every update is native.
type kind struct {
	observe.Kind
	// podsBy is the user that creates and deletes the pods: a native controller.
	podsBy string
	// decideEdit decides what the edit of a template will do.
	decideEdit func(h templateEdits, ctx context.Context, req admission.Request, before *workload) (editDecision, error)
	// refusePod returns the error with which a deletion of the pod by podsBy is refused; nil if the pod does not stay.
	refusePod func(h holding, ctx context.Context, pod *corev1.Pod) (refusal, error)
	// keepsRevision reports whether a ControllerRevision that podsBy deletes is to stay; nil if the kind has none.
	keepsRevision func(h holding, ctx context.Context, reader observe.Reader, revision *apps.ControllerRevision) (bool, error)
	// futile returns a function that reports whether podsBy achieves nothing by deleting the pod: see throttle.go.
	futile func(h holding, pod *corev1.Pod) func(context.Context) bool
	// throttle is how podsBy then waits for the answer.
	throttle throttling
}
