package webhook

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stayput/stayput/internal/bynamespace"
)

// decision is the value of the metric label under which a decided request is counted.
type decision string

const (
	uncounted    decision = ""              // not counted
	inPlace      decision = "in-place"      // an edit that is made in place
	recreate     decision = "recreate"      // an edit that needs new pods
	rejected     decision = "rejected"      // an edit that needs new pods, where the mode is in-place-only
	held         decision = "held"          // a native write that is denied while Stayput updates the workload
	createdEmpty decision = "created-empty" // a ReplicaSet that is created without replicas
	corrected    decision = "corrected"     // the status of a pod, stored with another Ready than was sent
	failed       decision = "error"         // a request that could not be decided
)

var (
	decisions = counter("stayput_admission_decisions_total", "Admission requests, by kind and decision.",
		bynamespace.Label, "kind", "decision")
	holds = counter("stayput_held_writes_total", "Writes of native controllers held, by kind of object.", "kind")

	namespaces = bynamespace.New(nil, decisions)
)

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	vector := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	metrics.Registry.MustRegister(vector)
	return vector
}

// CountByNamespace keeps the metrics by namespace, for the namespaces that are managed.
func CountByNamespace(ctx context.Context, informers cache.Informers, manages func(*corev1.Namespace) bool) error {
	return namespaces.Follow(ctx, informers, manages)
}

// count counts a decision. A failure to decide says nothing of the workload, and the namespace need not even be labelled. So it counts as
// elsewhere.
func count(namespace, kind string, made decision) {
	if made == uncounted {
		return
	}
	if made == failed {
		namespace = bynamespace.Elsewhere
	}
	decisions.WithLabelValues(namespaces.In(namespace), kind, string(made)).Inc()
	if made == held || made == createdEmpty {
		holds.WithLabelValues(kind).Inc()
	}
}
