package webhook

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/internal/observe"
)

// Register adds each webhook to the server at its path. The server limits how many requests there are and how long each may take.
func Register(server ctrlwebhook.Server, h Handlers) {
	h.holdStarts = holdStarts{cache.NewExpiring()}
	h.throttled = throttledByUser()
	h.managed = managedNamespaces{h.Sources, lookups()}
	h.recounts = recounts()
	h.retries = newRetries()
	for path, route := range h.routes() {
		server.Register(path, h.webhook(path, h.handlerOf(route)))
	}
}

// handlerOf returns a handler that decides only the requests that the webhook is called for, and allows others.
func (h Handlers) handlerOf(route route) handler {
	decided := h.managed.onlyManaged(route.handler, route.kinds...)
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

// routes returns all webhooks by path.
func (h Handlers) routes() map[string]route {
	var workloads, podsBy, revisionsBy []string
	for _, kind := range observe.Kinds {
		workloads, podsBy = append(workloads, kind.Workload.Name), append(podsBy, kind.PodsBy)
		if kind.Of != nil {
			revisionsBy = append(revisionsBy, kind.PodsBy)
		}
	}
	pods, byDeployment := []string{"Pod"}, []string{deploymentController}
	return map[string]route{
		"/mutate-workload":        {handler: h.mutateWorkload, kinds: workloads},
		"/validate-workload":      {handler: h.validateWorkload, kinds: workloads},
		"/validate-in-place-only": {handler: h.validateWorkload, kinds: workloads, strict: true},
		"/mutate-pod-status":      {handler: mutatePodStatus, kinds: pods},
		"/validate-new-pod":       h.route(admissionv1.Create, []string{replicaSetController}, pods, h.validateNewPod),
		"/validate-pod":           h.route(admissionv1.Delete, podsBy, pods, h.validatePod),
		"/validate-revision":      h.route(admissionv1.Delete, revisionsBy, []string{"ControllerRevision"}, h.validateRevision),
		"/throttle-pod":           h.route(admissionv1.Delete, podsBy, pods, h.throttleDeletion),
		"/mutate-replicaset":      h.route(admissionv1.Create, byDeployment, []string{"ReplicaSet"}, h.mutateReplicaSet),
		"/validate-replicaset":    h.route("", byDeployment, []string{"ReplicaSet", "Scale"}, h.validateReplicaSet),
		"/throttle-replicaset":    h.route(admissionv1.Update, byDeployment, []string{"ReplicaSet"}, h.throttleScaling),
		"/validate-status":        h.route(admissionv1.Update, byDeployment, []string{"Deployment"}, h.validateStatus),
	}
}

// route returns a webhook for one operation of native controllers, or for every one. It decides while a leader is alive, and allows all
// else.
func (s Sources) route(operation admissionv1.Operation, users, kinds []string, decide handler) route {
	return route{users: users, kinds: kinds, handler: func(ctx context.Context, req admission.Request) (answer, error) {
		if !slices.Contains(users, req.UserInfo.Username) || operation != "" && req.Operation != operation {
			return allow(), nil
		}
		if alive, err := s.alive(ctx); err != nil || !alive {
			return allow(), err
		}
		return decide(ctx, req)
	}}
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
