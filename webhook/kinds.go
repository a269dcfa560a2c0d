package webhook

import (
	"context"
	"maps"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/observe"
)

// kinds are the kinds of workloads whose edits and native writes are judged.
var kinds = []kind{deploymentKind, daemonSetKind}

// kind is what the webhooks do about one kind of workload. The users whose writes are held only exist under kube-controller-manager
// --use-service-account-credentials; without it no write is ours and every update is native.
type kind struct {
	observe.Kind
	// podsBy is the user who creates and deletes its pods.
	podsBy string
	// decideEdit tells what the edit of a template will do.
	decideEdit func(h Handlers, ctx context.Context, req admission.Request, before *workload) (editDecision, error)
	// stays reports whether a pod that podsBy deletes is to stay.
	stays func(h Handlers, ctx context.Context, pod *corev1.Pod) (bool, error)
	// futile returns what reports whether podsBy asks for nothing when it deletes the pod: see throttle.go.
	futile func(h Handlers, pod *corev1.Pod) func(context.Context) bool
	// throttle is how long it then waits for the answer.
	throttle time.Duration
	// further are the webhooks that only this kind has, by path.
	further func(h Handlers) map[string]route
}

// route is a webhook: what it does, the kinds of objects it is called for, and the native controllers whose writes it judges; none if it
// judges everybody's.
type route struct {
	handler handler
	kinds   []string
	users   []string
	// strict: what cannot be judged is not allowed.
	strict bool
}

// routes are all webhooks by path; see the package's documentation for what calls them.
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

// Call is what the API server is to call a webhook for: these kinds of objects, written by one of these users, if there are any.
type Call struct{ Kinds, Users []string }

// Calls are what the webhook configurations have to say, by the path of the webhook.
func Calls() map[string]Call {
	calls := map[string]Call{}
	for path, route := range (Handlers{}).routes() {
		calls[path] = Call{Kinds: route.kinds, Users: route.users}
	}
	return calls
}

// kindOfPods is the kind of workload whose native controller creates or deletes a pod; nil if somebody else does.
func kindOfPods(req admission.Request, operation admissionv1.Operation) *kind {
	for _, kind := range kinds {
		if by(req, kind.podsBy, operation) {
			return &kind
		}
	}
	return nil
}
