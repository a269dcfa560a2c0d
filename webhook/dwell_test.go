package webhook

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// closed is the pod with its gate closed.
func closed(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: inplace.ConditionServing, Status: corev1.ConditionFalse}}
	return pod
}

// A deletion that is refused on the cache is right only where something is sure to wake who wants it: of a DaemonSet, its gate or the next signature.
func TestClosedGatesRestOnTheCache(t *testing.T) {
	web, unmarked, marked := deployment(t, v2Template), revision(t, "web-1", v1Template, "2"), settling(revision(t, "web-1", v1Template, "2"))
	first, second := controllerRevision(t, "1", v1Template), controllerRevision(t, "2", v2Template)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	agents := func(template string) client.Reader {
		return reader(t, namespace(inplace.ModeInPlace), daemonSet(t, template), first, second, node, daemon("agent-x", "1"))
	}
	shop := func(rs *inplace.ReplicaSet) client.Reader { return reader(t, namespace(inplace.ModeInPlace), web, rs) }
	for name, test := range map[string]struct {
		cached, live client.Reader
		pod          *corev1.Pod
		user         string
		code         int32
	}{
		"a ReplicaSet, only in the cache":    {shop(marked), shop(unmarked), closed(pod(marked)), replicaSetController, 0},
		"a ReplicaSet, not yet in the cache": {shop(unmarked), shop(marked), closed(pod(marked)), replicaSetController, 404},
		"a daemon is updated":                {agents(v2Template), broken(t), closed(daemon("agent-x", "1")), daemonSetController, 404},
		"a daemon whose gate is open":        {agents(v2Template), agents(envTemplate), daemon("agent-x", "1"), daemonSetController, 0},
		"the cache knows no update of it":    {agents(envTemplate), agents(v2Template), closed(daemon("agent-x", "1")), daemonSetController, 404},
		"the cache lacks the daemon's set":   {reader(t, namespace(inplace.ModeInPlace), node), agents(v2Template), closed(daemon("agent-x", "1")), daemonSetController, 404},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, test.cached, test.live)
			req := request(t, test.user, admissionv1.Delete, nil, test.pod)
			expectDenied(t, h.handle(t.Context(), req, h.validatePod), test.code, metav1.StatusReasonNotFound)
		})
	}
}

func TestStay(t *testing.T) {
	one, two := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "two"}
	always := func(context.Context) bool { return true }
	for name, test := range map[string]struct {
		inside []types.NamespacedName
		stands func(context.Context) bool
		takes  time.Duration
	}{
		"as long as it may":         {nil, always, dwell},
		"until it does not stand":   {nil, until(3), 3 * lookEvery},
		"another about the same":    {[]types.NamespacedName{one}, always, 0},
		"no more workers are taken": {[]types.NamespacedName{two}, always, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDwellings()
				for _, object := range test.inside {
					d.enter(object)
				}
				from := time.Now()
				d.stay(t.Context(), one, test.stands)
				if took := time.Since(from); took != test.takes {
					t.Errorf("the refusal took %s, want %s", took, test.takes)
				}
				if len(test.inside) == 0 && !d.enter(one) {
					t.Error("the refusal has not made room for the next")
				}
			})
		})
	}
}

// until stands that often.
func until(times int) func(context.Context) bool {
	return func(context.Context) bool { times--; return times >= 0 }
}

// What ends a refusal that takes its time is what the native controller waits for.
func TestWhatEndsARefusal(t *testing.T) {
	objects := []client.Object{namespace(inplace.ModeInPlace), deployment(t, v2Template), revision(t, "web-2", v2Template, "0"), pod(revision(t, "web-1", v1Template, "3")),
		daemonSet(t, v2Template), controllerRevision(t, "1", v1Template), daemon("agent-x", "1")}
	web1 := types.NamespacedName{Namespace: space, Name: "web-1"}
	for name, test := range map[string]struct {
		stands func(h Handlers) func(context.Context) bool
		change client.Object
	}{
		"an edit":                {func(h Handlers) func(context.Context) bool { return h.sameUpdate(web1) }, newer(deployment(t, v2Template))},
		"the label is taken off": {func(h Handlers) func(context.Context) bool { return h.sameUpdate(web1) }, namespace("")},
		"replicas for the pods": {func(h Handlers) func(context.Context) bool {
			return h.surplusPasses(pod(revision(t, "web-1", v1Template, "3")))
		},
			settling(revision(t, "web-1", v1Template, "1"))},
		"a gate that closes": {func(h Handlers) func(context.Context) bool { return h.sameDaemons(daemon("agent-x", "1")) }, closed(daemon("agent-x", "1"))},
		"another template":   {func(h Handlers) func(context.Context) bool { return h.sameDaemons(daemon("agent-x", "1")) }, newer(daemonSet(t, v2Template))},
	} {
		t.Run(name, func(t *testing.T) {
			lowered := settling(revision(t, "web-1", v1Template, "0"))
			lowered.Status.Replicas = 1
			cached, ok := reader(t, append(objects, lowered)...).(client.Client)
			if !ok {
				t.Fatal("the fake client cannot write")
			}
			stands := test.stands(handlers(t, cached, broken(t)))
			for range 2 {
				if !stands(t.Context()) {
					t.Fatal("the refusal does not stand although nothing has changed")
				}
			}
			change(t, cached, test.change)
			if stands(t.Context()) {
				t.Error("the refusal stands all the same")
			}
		})
	}
}

func newer[T client.Object](object T) T {
	object.SetGeneration(7)
	return object
}

// change replaces what is there of that name.
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
