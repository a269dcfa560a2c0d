package report

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/inplace"
)

// Metrics has the metrics of updates in place. Durations are in seconds.
type Metrics struct {
	started     *prometheus.CounterVec
	completed   *prometheus.CounterVec
	failed      *prometheus.CounterVec
	superseded  *prometheus.CounterVec
	duration    prometheus.Histogram
	moved       prometheus.Counter
	unavailable prometheus.Histogram
	inFlight    prometheus.Gauge
	stalled     prometheus.Gauge
	PrePullPods prometheus.Counter
	pullsFailed prometheus.Counter
	bypassed    *prometheus.CounterVec
}

// RegisterMetrics registers the metrics without a controller, for programs that describe them.
func RegisterMetrics(registry prometheus.Registerer) { NewMetrics(registry) }

// NewMetrics registers the metrics and returns them.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		started:   counter("updates_started_total", "Updates of Deployments and DaemonSets begun in place.", "mode"),
		completed: counter("updates_completed_total", "Updates of Deployments and DaemonSets completed in place.", "mode"),
		failed: counter("updates_failed_total",
			"Updates begun in place and not completed so: fallen back to the native controller, stalled or deleted.", "mode", "reason"),
		superseded: counter("updates_superseded_total", "Updates begun in place that a later edit replaced before they completed.", "mode"),
		duration: histogram("update_duration_seconds",
			"Time from the start of an update in place to every pod available.", prometheus.ExponentialBuckets(1, 2, 12)),
		moved: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "stayput", Name: "pods_moved_total", Help: "Pods moved to another revision."}),
		unavailable: histogram("pod_unavailable_seconds",
			"Time a pod was not Ready during its update in place.", prometheus.ExponentialBuckets(0.25, 2, 12)),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "stayput", Name: "updates_in_flight",
			Help: "Deployments and DaemonSets being updated in place."}),
		stalled: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "stayput", Name: "updates_stalled",
			Help: "Deployments whose update in place has made no progress for progressDeadlineSeconds."}),
		PrePullPods: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "stayput", Name: "pre_pull_pods_created_total",
			Help: "Pods created to have a node pull images before containers stop."}),
		pullsFailed: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "stayput", Name: "image_pulls_failed_total",
			Help: "Images that could not be pulled, each once per update and message."}),
		bypassed: counter("webhook_bypassed_total",
			"Updates in which a webhook did not hold a native controller's write that it should have held, by kind of workload.", "kind"),
	}
	registry.MustRegister(m.started, m.completed, m.failed, m.superseded, m.duration, m.moved, m.unavailable,
		m.inFlight, m.stalled, m.PrePullPods, m.pullsFailed, m.bypassed)
	m.begin()
	return m
}

// begin sets counters to zero. Prometheus does not see an increase in a series that begins with its first value. There
// are too many reasons of failures to do the same for them.
func (m *Metrics) begin() {
	for _, kind := range kinds.All {
		m.bypassed.WithLabelValues(kind.Workload.Name)
	}
	for _, mode := range inplace.NamespaceModes {
		for _, vector := range []*prometheus.CounterVec{m.started, m.completed, m.superseded} {
			vector.WithLabelValues(string(mode))
		}
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "stayput", Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "stayput", Name: name, Help: help, Buckets: buckets})
}
