package report

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// ConfigurationChanged reports that the template was edited because these sources have changed. The workload is as the API server returned
// it, so it has the decision about that edit.
func (r *Reporter) ConfigurationChanged(workload client.Object, sources []string) {
	namespace, counted := r.metrics.Namespaces.In(workload.GetNamespace())
	defer counted()
	r.metrics.configured.WithLabelValues(namespace).Inc()
	decision := cmp.Or(workload.GetAnnotations()[inplace.AnnotationDecision], "no manager has decided, so the update is native")
	r.event(workload, corev1.EventTypeNormal, EventConfiguration, inplace.FirstOf(sources, ", ")+" changed: "+decision)
}

// ConfigurationNotFollowed reports why containers do not restart when their configuration changes.
func (r *Reporter) ConfigurationNotFollowed(workload client.Object, why string) {
	r.event(workload, corev1.EventTypeWarning, EventNotFollowed, why)
}
