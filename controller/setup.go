package controller

import (
	"context"
	"errors"
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
	// one for orphans. They are many because they wait for the turns of their writes. What they write at a time is bounded there.
	workers = 128
	// share is how many workers may be busy with one namespace. They mostly wait, so several are useful. Few enough must be busy that
	// other namespaces need not wait.
	share = 32
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
	live := cached // the API server itself, with the same settings
	live.Reader, live.Stores = m.GetAPIReader(), nil
	fallbacks := types.NamespacedName{Namespace: cached.Hold.Namespace, Name: inplace.Fallbacks}
	writer := write.Writer{Client: m.GetClient(), Live: m.GetAPIReader(), Fallbacks: fallbacks, Turns: &write.Turns{}}
	metrics := report.NewMetrics(ctrlmetrics.Registry)
	failed := []error{metrics.Setup(m, cached.ExcludedNamespaces.Manages),
		setupOrphans(m, &orphans{cached: cached, live: live, writer: writer}, dog)}
	if len(limits) > 0 {
		failed = append(failed, cached.Stores.IndexRestarting())
	}
	broker := &allowance.Broker{Limits: limits, Cached: cached, Live: live}
	for _, kind := range observe.Kinds {
		failed = append(failed, setupUpdates(m, cached, dog, &Reconciler{
			kind:       kind,
			cached:     kind.Source(cached),
			live:       kind.Source(live.WithoutNodes()),
			drains:     &drain.Drains{Cached: cached, Live: live},
			broker:     broker,
			woken:      make(chan event.GenericEvent, mostWoken),
			namespaces: live,
			leadership: leading,
			hold:       cached.Hold,
			writer:     writer,
			Reporter:   report.New(kind, m.GetEventRecorder(report.RecorderName), metrics),
			tracer:     tracer,
		}))
	}
	return errors.Join(failed...)
}

// setupOrphans adds the controller for orphans, on the leader.
func setupOrphans(m manager.Manager, orphans reconcile.Reconciler, dog *watchdog.Watchdog) error {
	return builder.ControllerManagedBy(m).Named("orphans").
		For(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(mayBeOrphan))).
		WithOptions(options()).
		Complete(watched{orphans, dog, "pod"})
}

// setupUpdates adds the controller for the workloads of one kind, on the leader.
func setupUpdates(m manager.Manager, cached observe.Reader, dog *watchdog.Watchdog, updates *Reconciler) error {
	kind := updates.kind
	route := router{reader: cached, kind: kind}
	return builder.ControllerManagedBy(m).Named(strings.ToLower(kind.Workload.Name)+"-updates").
		Watches(kind.Workload.Object(), handler.EnqueueRequestsFromMapFunc(route.workload)).
		Watches(kind.Revision.Object(), handler.EnqueueRequestsFromMapFunc(route.revision)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(route.pod)).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(route.endpoints)).
		Watches(&policyv1.PodDisruptionBudget{}, handler.EnqueueRequestsFromMapFunc(route.budget)).
		Watches(&corev1.Node{}, gathered(route.node), builder.WithPredicates(nodeMatters)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(route.namespace), builder.WithPredicates(relabelled)).
		WatchesRawSource(source.Channel(updates.woken, &handler.EnqueueRequestForObject{})).
		WithOptions(options()).
		Complete(watched{updates, dog, kind.Workload.Name})
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
