package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// hook is the annotation of the pre-restart hook that workloads name with stayput.dev/pre-restart-hooks: targets.
	hook = "pre-restart.hook.stayput.dev/targets"
	// serving is the condition with which Stayput takes a pod out of service: it is False from then until the new containers run.
	serving corev1.PodConditionType = "stayput.dev/serving"
)

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

// serves reports whether the pod is to be a target.
func serves(pod *corev1.Pod) bool {
	ready := false
	for _, condition := range pod.Status.Conditions {
		switch {
		case condition.Type == serving && condition.Status == corev1.ConditionFalse:
			return false
		case condition.Type == corev1.PodReady:
			ready = condition.Status == corev1.ConditionTrue
		}
	}
	return ready && pod.DeletionTimestamp == nil
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
