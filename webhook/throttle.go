package webhook

import (
	"context"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/deployments"
)

// A native controller whose write is refused tries again with its next event, and while pods move there is an event every few
// milliseconds. Its requests are limited (kube-api-qps of kube-controller-manager, 20 a second), so futile writes delay its other writes
// and its statuses. So where the answer stays the same until Stayput has acted, the answer comes late.
//
// A request that waits at a manager is lost when that manager ends, and then failurePolicy lets the write pass. So a webhook that refuses
// never waits. The throttling webhooks always allow, and the API server calls them in parallel with the webhooks that decide at once. The
// API server takes a refusal whatever the other webhooks answer, but not before all have answered
// (apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go).
const (
	// throttle is how long an answer may be delayed: less than the webhooks' timeoutSeconds. throttleFew is the same for a controller with
	// few workers.
	throttle    = 700 * time.Millisecond
	throttleFew = 250 * time.Millisecond
	// lookEvery is how often a waiting request checks whether Stayput has acted. A check is slow where there are thousands of pods. Then
	// checks take a tenth of the time.
	lookEvery = 20 * time.Millisecond
	// mostThrottled is the number of objects of a kind about which answers are delayed at a time. Each delayed answer blocks one worker of
	// the native controller. It has five (concurrent-deployment-syncs, concurrent-replicaset-syncs, concurrent-statefulset-syncs) or two
	// (concurrent-daemonset-syncs), and there are two managers.
	mostThrottled = 1
)

// throttled are the objects about which an answer is delayed. Of several requests about one object, only one is delayed: the controller
// waits for all of them.
type throttled struct {
	longest time.Duration
	lock    sync.Mutex
	objects sets.Set[types.NamespacedName]
}

func newThrottled(longest time.Duration) *throttled {
	return &throttled{longest: longest, objects: sets.New[types.NamespacedName]()}
}

func throttledByUser() map[string]*throttled {
	by := map[string]*throttled{deploymentController: newThrottled(throttle)}
	for _, kind := range kinds {
		by[kind.podsBy] = newThrottled(kind.throttle)
	}
	return by
}

// wait returns when the request is no longer futile, or has waited long enough.
func (t *throttled) wait(ctx context.Context, object types.NamespacedName, futile func(context.Context) bool) {
	if !t.enter(object) {
		return
	}
	defer t.leave(object)
	ctx, cancel := context.WithTimeout(ctx, t.longest)
	defer cancel()
	for from := time.Now(); futile(ctx); from = time.Now() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(lookEvery, 9*time.Since(from))):
		}
	}
}

func (t *throttled) enter(object types.NamespacedName) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.objects.Has(object) || t.objects.Len() >= mostThrottled {
		return false
	}
	t.objects.Insert(object)
	return true
}

func (t *throttled) leave(object types.NamespacedName) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.objects.Delete(object)
}

// throttleScaling delays the answer to the Deployment controller while its scaling is held.
func (h Handlers) throttleScaling(ctx context.Context, req admission.Request) (answer, error) {
	if by(req, deploymentController, admissionv1.Update) {
		h.throttled[deploymentController].wait(ctx, key(req), h.sameUpdate(key(req)))
	}
	return allow(), nil
}

// throttleDeletion delays the answer to the native controller of the pod while its deletion is held.
func (h Handlers) throttleDeletion(ctx context.Context, req admission.Request) (answer, error) {
	kind := kindBy(req, admissionv1.Delete)
	if kind == nil {
		return allow(), nil
	}
	pod, err := decodePod(req, req.OldObject)
	if err != nil || metav1.GetControllerOfNoCopy(pod) == nil || deployments.MayBeDeleted(pod) {
		return allow(), err
	}
	h.throttled[kind.podsBy].wait(ctx, ownerOf(pod), kind.futile(h, pod))
	return allow(), nil
}

// ownerOf returns the namespace and name of the object that controls the pod.
func ownerOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: metav1.GetControllerOfNoCopy(pod).Name}
}

// sameUpdate returns a function that reports whether Stayput still moves the pods of the ReplicaSet's Deployment, and the Deployment has
// not been edited since the first call.
func (h Handlers) sameUpdate(key types.NamespacedName) func(context.Context) bool {
	generation := int64(-1)
	return func(ctx context.Context) bool {
		rollout := h.cachedRollout(ctx, key)
		if rollout == nil {
			return false
		}
		if generation < 0 {
			generation = rollout.Deployment.Generation
		}
		return rollout.Deployment.Generation == generation && h.holds(rollout)
	}
}

// surplusPasses returns a function that reports whether the leader is about to bring replicas and pods of the pod's ReplicaSet in line.
// The function is called again and again, and there may be thousands of pods: it only counts them.
func (h Handlers) surplusPasses(pod *corev1.Pod) func(context.Context) bool {
	return func(ctx context.Context) bool {
		if alive, err := h.alive(ctx); err != nil || !alive {
			return false
		}
		rs, err := h.Cached.ReplicaSetOf(ctx, pod)
		if rs == nil || err != nil {
			return false
		}
		live, err := h.Cached.LivePodsOf(ctx, rs)
		return err == nil && deployments.SurplusPasses(rs, live)
	}
}

// cachedRollout reads the rollout that the ReplicaSet is part of from the cache, without its pods. It returns nil if there is none, or no
// living leader to move its pods.
func (h Handlers) cachedRollout(ctx context.Context, key types.NamespacedName) *deployments.Rollout {
	if alive, err := h.alive(ctx); err != nil || !alive {
		return nil
	}
	rollout, err := rolloutWith(ctx, h.Cached.WithoutPods(), key)
	if err != nil {
		return nil
	}
	return rollout
}
