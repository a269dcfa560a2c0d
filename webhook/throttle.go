package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/replicas"
)

// A native controller that is refused asks again with its next event, and while pods move there is one every few milliseconds. Its requests are
// limited (kube-api-qps of kube-controller-manager, 20 a second): those that are in vain keep back others, and statuses. So where the answer stays the
// same until we have acted, it comes late.
//
// A request that waits with us is lost when we end, and then failurePolicy lets the write pass. So nobody who refuses waits: these webhooks always
// allow, and are asked side by side with those that decide at once. The API server takes a refusal whatever becomes of the others, but not before
// all have answered (apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go).
const (
	// throttle is how long an answer may be late, less than the webhooks' timeoutSeconds; throttleFew, where there are few workers.
	throttle    = 700 * time.Millisecond
	throttleFew = 250 * time.Millisecond
	// lookEvery is how often it is seen whether we have acted; where a look takes long, as there are thousands of pods, it takes a tenth of the time.
	lookEvery = 20 * time.Millisecond
	// mostThrottled is for how many objects of a kind at a time answers are late. Each keeps one of the native controller's workers, of which there
	// are five (concurrent-deployment-syncs, concurrent-replicaset-syncs) or two (concurrent-daemonset-syncs); and there are two managers.
	mostThrottled = 1
)

// throttled are the objects about which an answer is late. Of several about the same one is, as their author waits for all of them.
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

// wait returns when the request would no longer be in vain, or has waited long enough.
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

// throttleScaling makes the Deployment controller wait whose scaling is held.
func (h Handlers) throttleScaling(ctx context.Context, req admission.Request) (answer, error) {
	if by(req, deploymentController, admissionv1.Update) {
		h.throttled[deploymentController].wait(ctx, key(req), h.sameUpdate(key(req)))
	}
	return allow(), nil
}

// throttleDeletion makes the controller of pods wait whose deletion is held.
func (h Handlers) throttleDeletion(ctx context.Context, req admission.Request) (answer, error) {
	kind := kindOfPods(req, admissionv1.Delete)
	if kind == nil {
		return allow(), nil
	}
	pod, err := decodePod(req, req.OldObject)
	if err != nil || metav1.GetControllerOfNoCopy(pod) == nil || replicas.MayBeDeleted(pod) {
		return allow(), err
	}
	h.throttled[kind.podsBy].wait(ctx, ownerOf(pod), kind.futile(h, pod))
	return allow(), nil
}

// ownerOf names what controls the pod.
func ownerOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: metav1.GetControllerOfNoCopy(pod).Name}
}

// sameUpdate reports whether the pods of the ReplicaSet's Deployment are still moved, and nobody has edited it since it was first asked.
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

// surplusPasses reports whether the leader is about to bring replicas and pods of the pod's ReplicaSet in line. It is asked again and again, and there may
// be thousands of pods: they are only counted.
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
		return err == nil && replicas.SurplusPasses(rs, live)
	}
}

// cachedRollout reads the rollout that the ReplicaSet is part of, without its pods; nil if there is none, or no leader to move them.
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

// sameDaemons reports whether the pod stays, the DaemonSet is what it was when it was first asked, and no gate of its pods has moved: its controller
// asks because too few of them are out of service.
func (h Handlers) sameDaemons(pod *corev1.Pod) func(context.Context) bool {
	before := ""
	return func(ctx context.Context) bool {
		if before == "" {
			if stays, err := h.holdsDaemon(ctx, h.Cached, pod); !stays || err != nil {
				return false
			}
		}
		daemonSet, err := h.Cached.DaemonSetOf(ctx, pod)
		if daemonSet == nil || err != nil {
			return false
		}
		rollout, err := h.Cached.DaemonRolloutOf(ctx, daemonSet)
		if err != nil {
			return false
		}
		now := fmt.Sprint(daemonSet.Generation, rollout.ClosedGates())
		if before == "" {
			before = now
		}
		return now == before
	}
}
