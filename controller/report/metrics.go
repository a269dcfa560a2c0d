package report

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/internal/bynamespace"
	"github.com/stayput/stayput/internal/observe"
)

// Metrics has the metrics of updates in place. Durations are in seconds. Each metric has the label bynamespace.Label, unless it is about
// all namespaces together.
type Metrics struct {
	started     *prometheus.CounterVec
	completed   *prometheus.CounterVec
	failed      *prometheus.CounterVec
	superseded  *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	moved       *prometheus.CounterVec
	unavailable *prometheus.HistogramVec
	inProgress  *inProgress
	PrePullPods *prometheus.CounterVec
	pullsFailed *prometheus.CounterVec
	bypassed    *prometheus.CounterVec
	// hooksTimedOut counts pods.
	hooksTimedOut *prometheus.CounterVec
	// Namespaces are the series of labelled namespaces.
	Namespaces *bynamespace.Series
}

// NewMetrics registers the metrics and returns them.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		started:   counter("updates_started_total", "Updates begun in place.", "mode"),
		completed: counter("updates_completed_total", "Updates completed in place.", "mode"),
		failed: counter("updates_failed_total",
			"Updates begun in place and not completed so: fallen back to the native controller, stalled or deleted.", "mode", "reason"),
		superseded: counter("updates_superseded_total", "Updates begun in place that a later edit replaced before they completed.", "mode"),
		duration: histogram("update_duration_seconds",
			"Time from the start of an update in place to every pod available.", prometheus.ExponentialBuckets(1, 2, 12)),
		moved: counter("pods_moved_total", "Pods moved to another revision."),
		unavailable: histogram("pod_unavailable_seconds",
			"Time a pod was not Ready during its update in place.", prometheus.ExponentialBuckets(0.25, 2, 12)),
		PrePullPods: counter("pre_pull_pods_created_total", "Pods created to have a node pull images before containers stop."),
		pullsFailed: counter("image_pulls_failed_total", "Images that could not be pulled, each once per update and message."),
		bypassed: counter("webhook_bypassed_total",
			"Updates in which a webhook did not hold a native controller's write that it should have held, by kind of workload.", "kind"),
		hooksTimedOut: counter("pre_restart_hook_timeouts_total",
			"Pods whose containers restarted although a pre-restart hook still held them, since the timeout had passed."),
	}
	m.Namespaces = bynamespace.New(m.begin, m.started, m.completed, m.failed, m.superseded, m.duration, m.moved, m.unavailable,
		m.PrePullPods, m.pullsFailed, m.bypassed, m.hooksTimedOut)
	m.inProgress = newInProgress(m.Namespaces)
	registry.MustRegister(m.started, m.completed, m.failed, m.superseded, m.duration, m.moved, m.unavailable,
		m.inProgress, m.PrePullPods, m.pullsFailed, m.bypassed, m.hooksTimedOut)
	m.begin(bynamespace.Elsewhere)
	return m
}

// Setup has the leader keep the metrics by namespace.
func (m *Metrics) Setup(to manager.Manager, manages func(*corev1.Namespace) bool) error {
	if err := m.Namespaces.Follow(context.Background(), to.GetCache(), manages); err != nil {
		return err
	}
	return to.Add(manager.RunnableFunc(func(context.Context) error {
		m.Namespaces.Begin()
		return nil
	}))
}

// begin sets the series of a namespace to zero. There are too many reasons of failures to do the same for them.
func (m *Metrics) begin(namespace string) {
	for _, vector := range []*prometheus.CounterVec{m.moved, m.PrePullPods, m.pullsFailed, m.hooksTimedOut} {
		vector.WithLabelValues(namespace)
	}
	for _, vector := range []*prometheus.HistogramVec{m.duration, m.unavailable} {
		vector.WithLabelValues(namespace)
	}
	for _, kind := range observe.Kinds {
		m.bypassed.WithLabelValues(namespace, kind.Workload.Name)
	}
	for _, mode := range inplace.NamespaceModes {
		for _, vector := range []*prometheus.CounterVec{m.started, m.completed, m.superseded} {
			vector.WithLabelValues(namespace, string(mode))
		}
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	options := prometheus.CounterOpts{Namespace: "stayput", Name: name, Help: help}
	return prometheus.NewCounterVec(options, append([]string{bynamespace.Label}, labels...))
}

func histogram(name, help string, buckets []float64) *prometheus.HistogramVec {
	options := prometheus.HistogramOpts{Namespace: "stayput", Name: name, Help: help, Buckets: buckets}
	return prometheus.NewHistogramVec(options, []string{bynamespace.Label})
}
