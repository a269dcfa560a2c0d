package controller

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/internal/observe"
)

// relabelled passes namespaces that appear with Stayput's label, and namespaces whose settings change. If the label was removed, updates in
// progress there have to fall back. If settings changed, updates in progress still wait by the former settings.
var relabelled = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetLabels()[inplace.LabelUpdate] != "" },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()
		return before[inplace.LabelUpdate] != after[inplace.LabelUpdate] || before[inplace.LabelKinds] != after[inplace.LabelKinds] ||
			e.ObjectOld.GetAnnotations()[inplace.AnnotationLocked] != e.ObjectNew.GetAnnotations()[inplace.AnnotationLocked] ||
			!maps.Equal(inplace.InForce(e.ObjectOld.GetAnnotations(), nil), inplace.InForce(e.ObjectNew.GetAnnotations(), nil))
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// router maps an event to the workload of its kind that the event concerns. It ignores events in namespaces without
// Stayput's label, except events of objects with a mark of Stayput, or with an answer to take back: the label may have been
// removed while no manager led. Reads can only fail if the kind is not in the cache at all. No event can repair that, so
// router logs the error.
type router struct {
	reader observe.Reader
	kind   observe.Kind
}

func (r router) workload(ctx context.Context, object client.Object) []reconcile.Request {
	if !r.labelled(ctx, object.GetNamespace()) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
}

func (r router) revision(ctx context.Context, object client.Object) []reconcile.Request {
	if !isMarked(object) && !r.labelled(ctx, object.GetNamespace()) {
		return nil
	}
	return r.controllerOf(object)
}

// controllerOf returns the workload that controls the object.
func (r router) controllerOf(object client.Object) []reconcile.Request {
	name := r.kind.NameOf(object)
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// node returns the workloads with a pod on the node. For DaemonSets it returns all, because only the template of a
// DaemonSet says whether a pod has to be on the node.
func (r router) node(ctx context.Context, node client.Object) []reconcile.Request {
	if r.kind.OnEveryNode {
		return slices.DeleteFunc(r.workloads(ctx, ""), func(request reconcile.Request) bool { return !r.labelled(ctx, request.Namespace) })
	}
	pods, err := r.reader.PodsOn(ctx, node.GetName())
	if err != nil {
		log.FromContext(ctx).Error(err, "Finding the pods of a node", "node", node.GetName())
		return nil
	}
	there := sets.New[reconcile.Request]()
	for _, pod := range pods {
		there.Insert(r.pod(ctx, pod)...)
	}
	return there.UnsortedList()
}

// gathered enqueues, after inplace.LookAgain, the workloads that events of nodes concern, so that each is looked at once for all
// of them. Many nodes may become unreachable, and reachable again, at the same time. Each event may concern a hundred workloads.
func gathered(concerned handler.MapFunc) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(ctx context.Context, node client.Object, to queue) {
		for _, request := range concerned(ctx, node) {
			to.AddAfter(request, inplace.LookAgain)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, to queue) { add(ctx, e.Object, to) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, to queue) { add(ctx, e.ObjectNew, to) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, to queue) { add(ctx, e.Object, to) },
	}
}

// pod returns the workload of a pod, or of a pre-pull pod. It finds the workload through the revision, if one controls the pod. If the
// cache does not have the revision yet, the event of the revision follows.
func (r router) pod(ctx context.Context, object client.Object) []reconcile.Request {
	pod, ok := object.(*corev1.Pod)
	if !ok || !podstate.IsPrePullPod(pod) && !waits(pod) && !r.labelled(ctx, pod.Namespace) {
		return nil
	}
	holder, err := r.kind.Holder(ctx, r.reader, pod)
	if err != nil {
		log.FromContext(ctx).Error(err, "Finding the "+r.kind.Revision.Name+" of a pod", "pod", client.ObjectKeyFromObject(pod))
		return nil
	}
	return r.controllerOf(holder)
}

// waits reports whether the pod is out of service, or its request has an answer to take back.
func waits(pod *corev1.Pod) bool {
	return readiness.Out(pod) || podstate.MayAnswer(pod, inplace.ModeNone)
}

// endpoints returns the workloads of those of the slice's pods that are out of service. Stayput does not wait for slices
// that another client than the EndpointSlice controller maintains.
func (r router) endpoints(ctx context.Context, object client.Object) []reconcile.Request {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok || !podstate.SliceFollowsPods(slice) || !r.labelled(ctx, slice.Namespace) {
		return nil
	}
	var requests []reconcile.Request
	for _, endpoint := range slice.Endpoints {
		if pod := r.targetPod(ctx, slice.Namespace, endpoint); pod != nil && readiness.Out(pod) {
			requests = append(requests, r.pod(ctx, pod)...)
		}
	}
	return requests
}

// budget returns the workloads in the namespace of a PodDisruptionBudget that are being updated: their updates may wait for
// it. Those that do not ask for PodDisruptionBudgets are looked at in vain.
func (r router) budget(ctx context.Context, budget client.Object) []reconcile.Request {
	if !r.labelled(ctx, budget.GetNamespace()) {
		return nil
	}
	updated := sets.New[reconcile.Request]()
	add := func(revision client.Object) { updated.Insert(r.controllerOf(revision)...) }
	if err := observe.Each(ctx, r.reader, r.kind.Revision.List(), add, client.InNamespace(budget.GetNamespace()),
		client.HasLabels{inplace.LabelUpdating}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing the revisions of a namespace", "namespace", budget.GetNamespace())
	}
	return updated.UnsortedList()
}

// targetPod returns the pod of an endpoint; nil if the cache has none.
func (r router) targetPod(ctx context.Context, namespace string, endpoint discoveryv1.Endpoint) *corev1.Pod {
	if endpoint.TargetRef == nil || endpoint.TargetRef.Kind != "Pod" {
		return nil
	}
	pod := &corev1.Pod{}
	key := types.NamespacedName{Namespace: namespace, Name: endpoint.TargetRef.Name}
	switch err := r.reader.Get(ctx, key, pod, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		log.FromContext(ctx).Error(err, "Finding the pod of an endpoint", "pod", key)
		return nil
	}
	return pod
}

// namespace returns every workload in the namespace.
func (r router) namespace(ctx context.Context, object client.Object) []reconcile.Request {
	return r.workloads(ctx, object.GetName())
}

// workloads returns the workloads of a namespace, or of all namespaces if the name is empty.
func (r router) workloads(ctx context.Context, namespace string) []reconcile.Request {
	var requests []reconcile.Request
	add := func(workload client.Object) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(workload)})
	}
	if err := observe.Each(ctx, r.reader, r.kind.Workload.List(), add, client.InNamespace(namespace),
		client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing the workloads of a namespace", "namespace", namespace)
	}
	return requests
}

// labelled reports whether workloads in the namespace may be managed. If the namespace cannot be read, it reports true.
// The reconcile then reads it again, and retries.
func (r router) labelled(ctx context.Context, namespace string) bool {
	mode, err := r.reader.NamespaceMode(ctx, namespace)
	return err != nil || mode.Manages()
}

// isMarked reports whether a revision is part of an update of Stayput, or of one after which the native controller is nudged.
func isMarked(object client.Object) bool {
	return revisions.Updating(object) || revisions.Nudged(object)
}
