package controller

import (
	"context"
	"strings"
	"time"

	"github.com/stayput/stayput/controller/allowance"
	"github.com/stayput/stayput/controller/drain"
	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/controller/write"

	corev1 "k8s.io/api/core/v1"

	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/internal/observe"
	"github.com/stayput/stayput/internal/tracing"
	"github.com/stayput/stayput/internal/watchdog"
)

// A failed reconcile is retried after 50 ms, doubled each time up to 30 s. While it fails, native writes may be held.
const (
	retryFirst = 50 * time.Millisecond
	retryLast  = 30 * time.Second
)

// atOnce is after what time a workload is planned again of which a reconcile has learned something: 0 would be never.
const atOnce = time.Millisecond

const (
	// workers is how many requests each controller works on at a time. There is one controller for each kind of workload, and
	// one for orphans.
	workers = 32
	// share is how many workers may be busy with one namespace. They mostly wait for answers, so several are useful. Few
	// enough must be busy that other namespaces need not wait.
	share = 8
)

// mostWoken bounds how many workloads wait to be planned again because their pods wait no longer for others.
const mostWoken = 1000

// reconcileTimeout ends the API calls of a reconcile. The reconcile is then retried. What it has written stays. If it still has not ended
// after twice that time, the watchdog ends the manager.
const reconcileTimeout = 30 * time.Second

// Setup adds the controllers for updates and orphans to the manager; they run on the leader. The cached reader reads the
// manager's cache, for which observe.Index has been called. The manager needs Namespaces, Pods, observe.Types, Nodes,
// EndpointSlices, Services and PodDisruptionBudgets in its cache. The leadership is that of the manager's election. The
// limits bound how many pods of all workloads restart at a time.
func Setup(
	m manager.Manager, cached observe.Reader, leading observe.Leadership, dog *watchdog.Watchdog, tracer *tracing.Tracer,
	limits concurrency.Limits,
) error {
	writer := newWriter(m, cached)
	if err := setupOrphans(m, cached, writer, dog); err != nil {
		return err
	}
	seen := &drain.Listings{Cache: m.GetCache()}
	if err := m.Add(seen); err != nil {
		return err
	}
	return setupKinds(m, cached, writer, leading, seen, dog, tracer, limits)
}

// setupKinds adds the controllers of all kinds of workloads and their metrics, on the leader.
func setupKinds(
	m manager.Manager, cached observe.Reader, writer write.Writer, leading observe.Leadership, seen *drain.Listings,
	dog *watchdog.Watchdog, tracer *tracing.Tracer, limits concurrency.Limits,
) error {
	metrics := report.NewMetrics(ctrlmetrics.Registry)
	if err := metrics.Setup(m, cached.ExcludedNamespaces.Manages); err != nil {
		return err
	}
	if len(limits) > 0 {
		if err := cached.Stores.IndexRestarting(); err != nil {
			return err
		}
	}
	broker := &allowance.Broker{Limits: limits, Cached: cached, Live: live(m, cached)}
	for _, kind := range observe.Kinds {
		updates := newReconciler(m, kind, cached, leading, seen, metrics)
		updates.writer, updates.tracer, updates.broker = writer, tracer, broker
		if err := setupUpdates(m, kind, cached, updates, dog); err != nil {
			return err
		}
	}
	return nil
}

// setupOrphans adds the controller for orphans, on the leader.
func setupOrphans(m manager.Manager, cached observe.Reader, writer write.Writer, dog *watchdog.Watchdog) error {
	return builder.ControllerManagedBy(m).Named("orphans").
		For(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(mayBeOrphan))).
		WithOptions(options()).
		Complete(watched{&orphans{cached: cached, live: live(m, cached), writer: writer}, dog, "pod"})
}

// setupUpdates adds the controller for the workloads of one kind, on the leader.
func setupUpdates(m manager.Manager, kind observe.Kind, cached observe.Reader, updates *Reconciler, dog *watchdog.Watchdog) error {
	route := router{reader: cached, kind: kind}
	return builder.ControllerManagedBy(m).Named(strings.ToLower(kind.Workload.Name)+"-updates").
		Watches(kind.Workload.Object(), handler.EnqueueRequestsFromMapFunc(route.workload)).
		Watches(kind.Revision.Object(), handler.EnqueueRequestsFromMapFunc(route.revision)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(route.pod)).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(route.endpoints)).
		Watches(&policyv1.PodDisruptionBudget{}, handler.EnqueueRequestsFromMapFunc(route.budget)).
		Watches(&corev1.Node{}, gathered(route.node), builder.WithPredicates(nodesOf(kind))).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(route.namespace), builder.WithPredicates(relabelled)).
		WatchesRawSource(source.Channel(updates.woken, &handler.EnqueueRequestForObject{})).
		WithOptions(options()).
		Complete(watched{updates, dog, kind.Workload.Name})
}

// live returns a Reader of the API server itself with the settings of the cached reader.
func live(m manager.Manager, cached observe.Reader) observe.Reader {
	cached.Reader, cached.Stores = m.GetAPIReader(), nil
	return cached
}

// newWriter returns the Writer of all controllers, which take turns.
func newWriter(m manager.Manager, cached observe.Reader) write.Writer {
	fallbacks := types.NamespacedName{Namespace: cached.Hold.Namespace, Name: inplace.Fallbacks}
	return write.Writer{Client: m.GetClient(), Live: m.GetAPIReader(), Fallbacks: fallbacks, Turns: &write.Turns{}}
}

func newReconciler(
	m manager.Manager, kind observe.Kind, cached observe.Reader, leading observe.Leadership, seen *drain.Listings, metrics *report.Metrics,
) *Reconciler {
	return &Reconciler{
		kind:       kind,
		woken:      make(chan event.GenericEvent, mostWoken),
		cached:     kind.Source(cached),
		live:       kind.Source(live(m, cached).WithoutNodes()),
		drains:     &drain.Drains{Cached: cached, Live: live(m, cached), Seen: seen},
		namespaces: live(m, cached),
		leadership: leading,
		hold:       cached.Hold,
		gone:       func(ctx context.Context) ([]types.UID, error) { return cached.Hold.FallbacksOfGone(ctx, cached) },
		Reporter:   report.New(kind, m.GetEventRecorder(report.RecorderName), metrics),
	}
}

func options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers, RateLimiter: retries(), NewQueue: newQueue, ReconciliationTimeout: reconcileTimeout}
}

// watched tells the watchdog when reconciles of a Reconciler begin and end.
type watched struct {
	reconcile.Reconciler
	dog  *watchdog.Watchdog
	what string
}

// Reconcile calls the Reconciler.
func (w watched) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer w.dog.Begin(watchdog.Work{Sort: w.what, Namespace: request.Namespace, Name: request.Name}, 2*reconcileTimeout)()
	return w.Reconciler.Reconcile(ctx, request)
}

func retries() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryLast)
}
