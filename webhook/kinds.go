package webhook

import (
	"context"
	"maps"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/observe"
)

// kinds are the kinds of workloads whose edits and native writes the webhooks decide on.
var kinds = []kind{deploymentKind, daemonSetKind}

// kind is what the webhooks do for one kind of workload. The users whose writes are held exist only under kube-controller-manager
// --use-service-account-credentials. Without that flag Stayput holds no write, and every update is native.
type kind struct {
	observe.Kind
	// podsBy is the user that creates and deletes the pods: a native controller.
	podsBy string
	// decideEdit decides what the edit of a template will do.
	decideEdit func(h Handlers, ctx context.Context, req admission.Request, before *workload) (editDecision, error)
	// ungated reports whether new pods of a workload of this kind get no gate; nil if all get one.
	ungated func(workload client.Object) bool
	// stays reports whether a pod that podsBy deletes is to stay.
	stays func(h Handlers, ctx context.Context, pod *corev1.Pod) (bool, error)
	// futile returns a function that reports whether podsBy achieves nothing by deleting the pod: see throttle.go.
	futile func(h Handlers, pod *corev1.Pod) func(context.Context) bool
	// throttle is how long podsBy then waits for the answer.
	throttle time.Duration
	// further returns the webhooks that only this kind has, by path.
	further func(h Handlers) map[string]route
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
	var workloads, podsBy []string
	further := map[string]route{}
	for _, kind := range kinds {
		workloads, podsBy = append(workloads, kind.Workload.Name), append(podsBy, kind.podsBy)
		maps.Copy(further, kind.further(h))
	}
	pods := []string{"Pod"}
	all := map[string]route{
		"/mutate-workload":        {handler: h.mutateWorkload, kinds: workloads},
		"/validate-workload":      {handler: h.validateWorkload, kinds: workloads},
		"/validate-in-place-only": {handler: h.validateWorkload, kinds: workloads, strict: true},
		"/mutate-pod":             {handler: h.mutatePod, kinds: pods, users: podsBy},
		"/mutate-pod-status":      {handler: h.mutatePodStatus, kinds: pods},
		"/validate-pod":           {handler: h.validatePod, kinds: pods, users: podsBy},
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

// kindOfPods returns the kind of workload whose native controller creates or deletes the pod; nil if another client does.
func kindOfPods(req admission.Request, operation admissionv1.Operation) *kind {
	for _, kind := range kinds {
		if by(req, kind.podsBy, operation) {
			return &kind
		}
	}
	return nil
}
