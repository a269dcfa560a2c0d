package main

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hook is the annotation of the pre-restart hook that workloads name with stayput.dev/pre-restart-hooks: targets.
const hook = "pre-restart.hook.stayput.dev/targets"

// targets are those of a load balancer. Both methods may be called again for the same pod.
type targets interface {
	register(ctx context.Context, pod, address string) error
	// deregister returns when the load balancer sends no more requests to the pod.
	deregister(ctx context.Context, pod string) error
}

// registrar registers the pods that serve, and deregisters the others.
type registrar struct {
	client.Client
	targets
}

// Reconcile implements reconcile.Reconciler. The annotation comes before the target and goes after it, so that every target has it. Each
// step may be made again, so it does not matter where the program ends.
func (r *registrar) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if err := r.Get(ctx, request.NamespacedName, pod); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	switch _, held := pod.Annotations[hook]; {
	case serves(pod) && !held:
		return ctrl.Result{}, r.annotate(ctx, pod, true) // the event of this write comes next
	case serves(pod):
		return ctrl.Result{}, r.register(ctx, pod.Name, pod.Status.PodIP)
	case pod.UID == "":
		return ctrl.Result{}, r.deregister(ctx, request.Name)
	case held:
		if err := r.deregister(ctx, pod.Name); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, r.annotate(ctx, pod, false)
	}
	return ctrl.Result{}, nil
}

// serves reports whether the pod is to be a target. Stayput takes a pod out of service by Ready=False, with reason UpdatingInPlace. The
// reason does not matter here: a pod that is not Ready by itself should get no requests either.
func serves(pod *corev1.Pod) bool {
	ready := func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, ready)
}

// annotate sets or removes the annotation. The API server refuses it if the pod has changed since, for example if Stayput has just taken it
// out of service. Then the event of that change comes next.
func (r *registrar) annotate(ctx context.Context, pod *corev1.Pod, held bool) error {
	changed := pod.DeepCopy()
	if delete(changed.Annotations, hook); held {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, hook, "a target")
	}
	return r.Patch(ctx, changed, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{}))
}

// configMapTargets are the entries of a ConfigMap.
type configMapTargets struct {
	client.Client
	namespace, name string
}

func (t configMapTargets) register(ctx context.Context, pod, address string) error {
	return t.patch(ctx, pod, fmt.Sprintf("%q", address))
}

func (t configMapTargets) deregister(ctx context.Context, pod string) error {
	return t.patch(ctx, pod, "null")
}

func (t configMapTargets) patch(ctx context.Context, pod, value string) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: t.name}}
	return t.Patch(ctx, object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{%q:%s}}`, pod, value)))
}
