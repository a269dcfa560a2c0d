package webhook

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/internal/observe"
)

func TestThrottleWaits(t *testing.T) {
	one, two, three := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "two"}, types.NamespacedName{Name: "three"}
	always := func(context.Context) bool { return true }
	for name, test := range map[string]struct {
		inside []types.NamespacedName
		futile func(context.Context) bool
		takes  time.Duration
	}{
		"as long as it may":             {nil, always, throttle},
		"until it is no longer futile":  {nil, until(3), 3 * lookEvery},
		"another about the same object": {[]types.NamespacedName{one}, always, 0},
		"beside another object":         {[]types.NamespacedName{two}, until(3), 3 * lookEvery},
		"no more workers are blocked":   {[]types.NamespacedName{two, three}, always, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newThrottled(throttle, 2)
				for _, object := range test.inside {
					d.enter(object)
				}
				from := time.Now()
				d.wait(t.Context(), one, test.futile)
				if took := time.Since(from); took != test.takes {
					t.Errorf("the answer took %s, want %s", took, test.takes)
				}
				if len(test.inside) == 0 && !d.enter(one) {
					t.Error("after the answer, the next request cannot wait")
				}
			})
		})
	}
}

// TestHowMuchEachControllerWaits: an answer that comes late blocks a worker of the native controller, of which it may have only two. In an
// update of a Deployment, pods leave one ReplicaSet and come to another. Both must wait, or their controller uses up its requests.
func TestHowMuchEachControllerWaits(t *testing.T) {
	for user, want := range map[string]struct {
		longest time.Duration
		objects int
	}{
		deploymentController:  {throttle, 1},
		replicaSetController:  {throttle, 2},
		daemonSetController:   {throttleFew, 1},
		statefulSetController: {throttle, 1},
	} {
		waits, objects := throttledByUser()[user], 0
		for waits.enter(types.NamespacedName{Name: strconv.Itoa(objects)}) {
			objects++
		}
		if waits.longest != want.longest || objects != want.objects {
			t.Errorf("%s waits for %s about %d objects, want %+v", user, waits.longest, objects, want)
		}
	}
}

// until returns a function that reports futile so many times.
func until(times int) func(context.Context) bool {
	return func(context.Context) bool { times--; return times >= 0 }
}

// TestWhatEndsThrottling: the waiting ends with what the native controller waits for.
func TestWhatEndsThrottling(t *testing.T) {
	objects := []client.Object{
		namespace(inplace.ModeInPlace), deployment(t, v2Template), revision(t, "web-2", v2Template, "0"),
		pod(revision(t, "web-1", v1Template, "3")),
		daemonSet(t, v2Template), controllerRevision(t, "1", v1Template), controllerRevision(t, "2", v2Template), daemon("agent-x", "1"),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}},
	}
	web1 := types.NamespacedName{Namespace: space, Name: "web-1"}
	for name, test := range map[string]struct {
		futile func(h Handlers) func(context.Context) bool
		change client.Object
	}{
		"an edit": {func(h Handlers) func(context.Context) bool { return h.sameUpdate(web1) },
			newer(deployment(t, v2Template))},
		"the label is removed": {func(h Handlers) func(context.Context) bool { return h.sameUpdate(web1) }, namespace("")},
		"replicas for the pods": {func(h Handlers) func(context.Context) bool {
			return h.surplusPasses(pod(revision(t, "web-1", v1Template, "3")))
		},
			markUpdating(revision(t, "web-1", v1Template, "1"))},
		"a pod is taken out of service": {
			func(h Handlers) func(context.Context) bool {
				return h.futile(observe.DaemonSets, daemon("agent-x", "1"))
			},
			outOfService(daemon("agent-x", "1")),
		},
		"another template": {
			func(h Handlers) func(context.Context) bool {
				return h.futile(observe.DaemonSets, daemon("agent-x", "1"))
			},
			newer(daemonSet(t, v2Template)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			lowered := markUpdating(revision(t, "web-1", v1Template, "0"))
			lowered.Status.Replicas = 1
			cached, ok := reader(t, append(objects, lowered)...).(client.Client)
			if !ok {
				t.Fatal("the fake client cannot write")
			}
			futile := test.futile(handlers(t, cached, broken(t)))
			for range 2 {
				if !futile(t.Context()) {
					t.Fatal("the request is not futile although nothing has changed")
				}
			}
			change(t, cached, test.change)
			if futile(t.Context()) {
				t.Error("the request is still futile")
			}
		})
	}
}

func newer[T client.Object](object T) T {
	object.SetGeneration(7)
	return object
}

// change replaces the stored object of the same name.
func change(t *testing.T, to client.Client, object client.Object) {
	t.Helper()
	object.SetResourceVersion("")
	if err := to.Update(t.Context(), object.DeepCopyObject().(client.Object)); err != nil {
		t.Fatal(err)
	}
	if _, pod := object.(*corev1.Pod); pod {
		if err := to.Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOnlyWhatIsHeldIsThrottledAndNothingIsRefused: a webhook that waits never refuses. A refusal would be lost with its manager, and the
// write would pass.
func TestOnlyWhatIsHeldIsThrottledAndNothingIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		deployment, daemons string
		user                string
		operation           admissionv1.Operation
		waits               bool
	}{
		"scaling while pods move":      {v2Template, v2Template, deploymentController, admissionv1.Update, true},
		"scaling in a native rollout":  {envTemplate, v2Template, deploymentController, admissionv1.Update, false},
		"scaling by a user":            {v2Template, v2Template, "jane", admissionv1.Update, false},
		"deletion of a surplus pod":    {v2Template, v2Template, replicaSetController, admissionv1.Delete, true},
		"deletion of a daemon pod":     {v2Template, v2Template, daemonSetController, admissionv1.Delete, true},
		"the same in a native rollout": {v2Template, envTemplate, daemonSetController, admissionv1.Delete, false},
		"deletion by a user":           {v2Template, v2Template, "jane", admissionv1.Delete, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				oldRS, node := markUpdating(revision(t, "web-1", v1Template, "0")), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
				oldRS.Status.Replicas = 1
				cached := reader(t, namespace(inplace.ModeInPlace),
					deployment(t, test.deployment), oldRS, revision(t, "web-2", test.deployment, "0"), pod(oldRS),
					daemonSet(t, test.daemons), controllerRevision(t, "1", v1Template), controllerRevision(t, "2", test.daemons),
					daemon("agent-x", "1"), node)
				h, from := handlers(t, cached, broken(t)), time.Now()
				handler, req := h.at("/throttle-replicaset"), request(t, test.user, test.operation, oldRS, oldRS)
				if test.operation == admissionv1.Delete {
					handler, req = h.at("/throttle-pod"), request(t, test.user, test.operation, nil, deletedBy(test.user, oldRS))
				}
				given, err := handler(t.Context(), req)
				if err != nil || !given.Allowed {
					t.Errorf("answered %+v, %v", given, err)
				}
				if took := time.Since(from); took > 0 != test.waits {
					t.Errorf("the answer took %s; throttled: %t", took, test.waits)
				}
			})
		})
	}
}

// deletedBy returns the pod that the user deletes.
func deletedBy(user string, oldRS *apps.ReplicaSet) *corev1.Pod {
	if user == daemonSetController {
		return daemon("agent-x", "1")
	}
	return pod(oldRS)
}
