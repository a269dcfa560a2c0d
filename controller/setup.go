package controller

import (
	"context"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/observe"
)

// A failed reconcile is tried again after 50 ms, doubled each time up to 30 s: while it fails, native writes may be held.
const (
	retryFirst = 50 * time.Millisecond
	retryLast  = 30 * time.Second
)

// workers is how many Deployments, and how many newborn pods, are worked on at a time.
const workers = 4

// Setup adds the controllers to the manager: updates on the leader, gates and the returned Prober on every replica. The reader
// reads the manager's cache, for which observe.Index has been called. The manager needs Namespaces, Pods, Deployments and
// ReplicaSets in its cache.
func Setup(m manager.Manager, cached observe.Reader) (*Prober, error) {
	if err := authorizationv1.AddToScheme(m.GetScheme()); err != nil {
		return nil, err
	}
	prober := &Prober{client: m.GetClient(), cache: m.GetCache()}
	if err := m.Add(prober); err != nil {
		return nil, err
	}
	if err := setupGates(m, prober); err != nil {
		return nil, err
	}
	return prober, setupUpdates(m, cached)
}

// setupGates opens gates on every replica.
func setupGates(m manager.Manager, prober *Prober) error {
	return builder.ControllerManagedBy(m).Named("gates").
		For(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(waitsForGate))).
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false), MaxConcurrentReconciles: workers, RateLimiter: retries()}).
		Complete(&gates{client: m.GetClient(), elected: m.Elected(), prober: prober})
}

// setupUpdates reconciles Deployments on the leader.
func setupUpdates(m manager.Manager, cached observe.Reader) error {
	live := cached
	live.Reader, live.Indexed = m.GetAPIReader(), false
	writer := writer{client: m.GetClient(), live: m.GetAPIReader(), memory: &memory{}}
	if err := m.Add(&farewell{cached: cached, writer: writer}); err != nil {
		return err
	}
	route := router{cached}
	return builder.ControllerManagedBy(m).Named("updates").
		Watches(&inplace.Deployment{}, handler.EnqueueRequestsFromMapFunc(route.deployment)).
		Watches(&inplace.ReplicaSet{}, handler.EnqueueRequestsFromMapFunc(route.replicaSet)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(route.pod)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(route.namespace), builder.WithPredicates(relabelled)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: retries()}).
		Complete(&Reconciler{
			cached:   cached,
			live:     live,
			writer:   writer,
			reporter: newReporter(m.GetEventRecorder("stayput"), newMetrics(ctrlmetrics.Registry)),
		})
}

func retries() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryLast)
}

// relabelled passes namespaces that appear with our label, and those whose label changes. A label that is taken off counts:
// what is under way there has to be released.
var relabelled = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetLabels()[inplace.LabelUpdate] != "" },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetLabels()[inplace.LabelUpdate] != e.ObjectNew.GetLabels()[inplace.LabelUpdate]
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// router finds the Deployment an event concerns. Events of namespaces without our label end here, except those of
// objects that carry a mark of ours: the label was taken off while nobody led. Reads can only fail where the cache lacks the
// kind altogether, which no event can repair: that is logged.
type router struct{ reader observe.Reader }

func (r router) deployment(ctx context.Context, object client.Object) []reconcile.Request {
	if !r.labelled(ctx, object.GetNamespace()) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
}

func (r router) replicaSet(ctx context.Context, object client.Object) []reconcile.Request {
	name := controllerName(object, "Deployment")
	if name == "" || !isMarked(object) && !r.labelled(ctx, object.GetNamespace()) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// pod goes by way of the pod's ReplicaSet. If the cache does not have that yet, its own arrival does what is due.
func (r router) pod(ctx context.Context, object client.Object) []reconcile.Request {
	pod, ok := object.(*corev1.Pod)
	if !ok || !isClosed(pod) && !r.labelled(ctx, pod.Namespace) {
		return nil
	}
	replicaSet, err := r.reader.ReplicaSetOf(ctx, pod)
	if err != nil {
		log.FromContext(ctx).Error(err, "Finding the ReplicaSet of a pod", "pod", client.ObjectKeyFromObject(pod))
		return nil
	}
	if replicaSet == nil {
		return nil
	}
	name := controllerName(replicaSet, "Deployment")
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name}}}
}

// namespace concerns every Deployment in it.
func (r router) namespace(ctx context.Context, object client.Object) []reconcile.Request {
	deployments := &inplace.DeploymentList{}
	if err := r.reader.List(ctx, deployments, client.InNamespace(object.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing the Deployments of a namespace", "namespace", object.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range deployments.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&deployments.Items[i])})
	}
	return requests
}

// labelled tells whether anything in the namespace may be managed. If it cannot be read, yes: reconciling finds out, and
// tries again.
func (r router) labelled(ctx context.Context, namespace string) bool {
	mode, err := r.reader.Mode(ctx, namespace, nil)
	return err != nil || mode.Manages()
}

// controllerName returns the name of the object's controller if it is of that apps kind.
func controllerName(object client.Object, kind string) string {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.Kind != kind || owner.APIVersion != "apps/v1" {
		return ""
	}
	return owner.Name
}

// isMarked tells whether a ReplicaSet is part of an update of ours, or of one released.
func isMarked(object client.Object) bool {
	labels := object.GetLabels()
	return labels[inplace.LabelSettling] != "" || labels[inplace.LabelReleased] != ""
}
