package write

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/tracing"
)

// written says what a step writes, in words of the Kubernetes API.
type written struct{ verb, kind, subresource, namespace, name string }

// writtenBy returns what the step writes.
func (w Writer) writtenBy(step steps.Step) written {
	switch s := step.(type) {
	case steps.CreateReplicaSet:
		return written{"create", "ReplicaSet", "", s.Namespace, s.Name}
	case steps.PatchReplicaSet:
		return written{"patch", "ReplicaSet", "", s.ReplicaSet.Namespace, s.ReplicaSet.Name}
	case steps.PatchRevision:
		return written{"patch", "ControllerRevision", "", s.Revision.Namespace, s.Revision.Name}
	case steps.PatchPod:
		subresource := ""
		if s.Resizes {
			subresource = "resize"
		}
		return written{"patch", "Pod", subresource, s.Pod.Namespace, s.Pod.Name}
	case steps.SetReady:
		return written{"patch", "Pod", "status", s.Pod.Namespace, s.Pod.Name}
	case steps.CreatePrePullPod:
		return written{"create", "Pod", "", s.Pod.Namespace, s.Pod.Name}
	case steps.DeletePrePullPod:
		return written{"delete", "Pod", "", s.Pod.Namespace, s.Pod.Name}
	case steps.PatchStatus:
		return written{"patch", "Deployment", "status", s.Deployment.Namespace, s.Deployment.Name}
	default: // both steps about fallbacks
		return written{"update", "ConfigMap", "", w.Fallbacks.Namespace, w.Fallbacks.Name}
	}
}

// begin begins the span of a step.
func (w Writer) begin(ctx context.Context, step steps.Step) (context.Context, trace.Span) {
	ctx, span := tracing.Within(ctx, "write")
	if span.IsRecording() {
		of := w.writtenBy(step)
		span.SetAttributes(tracing.Strings("verb", of.verb, "kind", of.kind, "subresource", of.subresource,
			"namespace", of.namespace, "name", of.name, "reason", step.Describe())...)
	}
	return ctx, span
}
