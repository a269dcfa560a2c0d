package webhook

import (
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/stayput/stayput/internal/observe"
)

// Register adds each webhook to the server at its path. The server limits how many requests there are and how long each may take. The
// package documentation says what the API server calls the webhooks for.
func Register(server ctrlwebhook.Server, h Handlers) {
	h.holdStarts = newHoldStarts()
	h.throttled = throttledByUser()
	h.lookups = lookups()
	h.recounts = recounts()
	h.retries = newRetries()
	for path, route := range h.routes() {
		server.Register(path, h.webhook(path, h.handlerOf(route)))
	}
}

// handlerOf returns a handler that decides only the requests that the webhook is called for, and allows others.
func (h Handlers) handlerOf(route route) handler {
	decided := labelled{h.Sources, h.lookups}.onlyManaged(route.handler, route.kinds...)
	if route.strict {
		return orDeny(decided)
	}
	return decided
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
	for _, kind := range observe.Kinds {
		workloads, podsBy = append(workloads, kind.Workload.Name), append(podsBy, kind.PodsBy)
		if kind.Of != nil {
			revisionsBy = append(revisionsBy, kind.PodsBy)
		}
	}
	pods, byDeployment := []string{"Pod"}, []string{deploymentController}
	edits, native := h.templateEdits(), h.nativeWrites()
	return map[string]route{
		"/mutate-workload":        {handler: edits.mutateWorkload, kinds: workloads},
		"/validate-workload":      {handler: edits.validateWorkload, kinds: workloads},
		"/validate-in-place-only": {handler: edits.validateWorkload, kinds: workloads, strict: true},
		"/validate-new-pod":       {handler: native.validateNewPod, kinds: pods, users: []string{replicaSetController}},
		"/mutate-pod-status":      {handler: mutatePodStatus, kinds: pods},
		"/validate-pod":           {handler: native.validatePod, kinds: pods, users: podsBy},
		"/validate-revision":      {handler: native.validateRevision, kinds: []string{"ControllerRevision"}, users: revisionsBy},
		"/throttle-pod":           {handler: native.throttleDeletion, kinds: pods, users: podsBy},
		"/mutate-replicaset":      {handler: native.mutateReplicaSet, kinds: []string{"ReplicaSet"}, users: byDeployment},
		"/validate-replicaset":    {handler: native.validateReplicaSet, kinds: []string{"ReplicaSet", "Scale"}, users: byDeployment},
		"/throttle-replicaset":    {handler: native.throttleScaling, kinds: []string{"ReplicaSet"}, users: byDeployment},
		"/validate-status":        {handler: native.validateStatus, kinds: []string{"Deployment"}, users: byDeployment},
	}
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
