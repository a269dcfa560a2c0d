package webhook

import (
	"context"
	"errors"
	"maps"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/observe"
)

// kinds are the kinds of workloads whose edits and native writes the webhooks decide on.
var kinds = []kind{deploymentKind, daemonSetKind, statefulSetKind}

// kind is what the webhooks do for one kind of workload. The users whose writes are held exist only under kube-controller-manager
// --use-service-account-credentials. Without that flag Stayput holds no write, and every update is native.
type kind struct {
	observe.Kind
	// podsBy is the user that creates and deletes the pods: a native controller.
	podsBy string
	// decideEdit decides what the edit of a template will do.
	decideEdit func(h Handlers, ctx context.Context, req admission.Request, before *workload) (editDecision, error)
	// ungated reports whether new pods of this kind get no gate; nil if all get one. Where it is set, a pod without a gate gets
	// inplace.AnnotationAdmitted.
	ungated func(h Handlers) bool
	// stays reports whether a pod that podsBy deletes is to stay.
	stays func(h Handlers, ctx context.Context, pod *corev1.Pod) (bool, error)
	// refuse returns the answer to a deletion by podsBy that is held.
	refuse refusal
	// keepsRevision reports whether a ControllerRevision that podsBy deletes is to stay; nil if the kind has none.
	keepsRevision func(h Handlers, ctx context.Context, reader observe.Reader, revision *apps.ControllerRevision) (bool, error)
	// futile returns a function that reports whether podsBy achieves nothing by deleting the pod: see throttle.go.
	futile func(h Handlers, pod *corev1.Pod) func(context.Context) bool
	// throttle is how long podsBy then waits for the answer.
	throttle time.Duration
	// further returns the webhooks that only this kind has, by path; nil if it has none.
	further func(h Handlers) map[string]route
}

// refusal returns the error with which a deletion of the object is refused.
type refusal func(resource schema.GroupResource, name string) *apierrors.StatusError

// heldMessage says in events and logs of native controllers that nothing is wrong.
const heldMessage = "held: stayput updates the pods of this workload in place"

// notFound tells a native controller that the object is gone already. It does not try again, and records no failure.
func notFound(resource schema.GroupResource, name string) *apierrors.StatusError {
	gone := apierrors.NewNotFound(resource, name)
	gone.ErrStatus.Message = heldMessage
	return gone
}

// conflict tells a native controller that the object is still there. It tries again later.
func conflict(resource schema.GroupResource, name string) *apierrors.StatusError {
	refused := apierrors.NewConflict(resource, name, errors.New(heldMessage))
	refused.ErrStatus.Message = heldMessage
	return refused
}

// route is a webhook: its handler, the kinds of objects that it is called for, and the native controllers whose writes it decides on.
// Without users it decides on the writes of every client.
type route struct {
	handler handler
	kinds   []string
	users   []string
	// strict: a request that cannot be decided is denied.
	strict bool
}

// routes returns all webhooks by path. The package documentation says what the API server calls them for.
func (h Handlers) routes() map[string]route {
	var workloads, podsBy, revisionsBy []string
	further := map[string]route{}
	for _, kind := range kinds {
		workloads, podsBy = append(workloads, kind.Workload.Name), append(podsBy, kind.podsBy)
		if kind.keepsRevision != nil {
			revisionsBy = append(revisionsBy, kind.podsBy)
		}
		if kind.further != nil {
			maps.Copy(further, kind.further(h))
		}
	}
	pods := []string{"Pod"}
	all := map[string]route{
		"/mutate-workload":        {handler: h.mutateWorkload, kinds: workloads},
		"/validate-workload":      {handler: h.validateWorkload, kinds: workloads},
		"/validate-in-place-only": {handler: h.validateWorkload, kinds: workloads, strict: true},
		"/mutate-pod":             {handler: h.mutatePod, kinds: pods, users: podsBy},
		"/mutate-pod-status":      {handler: h.mutatePodStatus, kinds: pods},
		"/validate-pod":           {handler: h.validatePod, kinds: pods, users: podsBy},
		"/validate-revision":      {handler: h.validateRevision, kinds: []string{"ControllerRevision"}, users: revisionsBy},
		"/throttle-pod":           {handler: h.throttleDeletion, kinds: pods, users: podsBy},
	}
	maps.Copy(all, further)
	return all
}

// Call is what the API server calls a webhook for: objects of these kinds, written by one of these users. Without users every client's
// writes count.
type Call struct{ Kinds, Users []string }

// Calls returns what the webhook configurations must contain, by the path of the webhook.
func Calls() map[string]Call {
	calls := map[string]Call{}
	for path, route := range (Handlers{}).routes() {
		calls[path] = Call{Kinds: route.kinds, Users: route.users}
	}
	return calls
}

// kindBy returns the kind of workload whose native controller creates or deletes the object; nil if another client does.
func kindBy(req admission.Request, operation admissionv1.Operation) *kind {
	for _, kind := range kinds {
		if by(req, kind.podsBy, operation) {
			return &kind
		}
	}
	return nil
}
