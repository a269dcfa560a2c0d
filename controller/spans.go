package controller

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/tracing"
)

// Reconcile looks at one workload, in a span of its own. The spans of the snapshot, the plan and each write are within it.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, span := r.tracer.Begin(ctx, "reconcile")
	if span.IsRecording() {
		span.SetAttributes(tracing.Strings("kind", r.Reporter.Kind(), "namespace", request.Namespace, "name", request.Name)...)
	}
	result, err := r.reconcile(ctx, request)
	tracing.End(span, err)
	return result, err
}

// snapshot reads a workload from the cache; nil if it is gone.
func (r *Reconciler) snapshot(ctx context.Context, workload types.NamespacedName) (engine.Rollout, error) {
	ctx, span := tracing.Within(ctx, "snapshot")
	rollout, err := r.cached(ctx, workload)
	if span.IsRecording() && rollout != nil {
		span.SetAttributes(attribute.Int("pods", len(rollout.Snapshot().Pods)), attribute.String("mode", string(rollout.Snapshot().Mode)))
	}
	tracing.End(span, err)
	return rollout, err
}

// plan makes a plan. Dry runs and reads that the plan needs are part of its span.
func (r *Reconciler) plan(ctx context.Context, workload types.NamespacedName, rollout engine.Rollout) (steps.Plan, error) {
	ctx, span := tracing.Within(ctx, "plan")
	plan, err := r.planOf(ctx, workload, rollout)
	if span.IsRecording() {
		span.SetAttributes(tracing.Strings("phase", string(plan.Phase), "message", plan.Message,
			"reason", plan.Decision.Reasons.String())...)
		span.SetAttributes(attribute.Int("steps", len(plan.Steps)))
	}
	tracing.End(span, err)
	return plan, err
}
