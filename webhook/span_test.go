package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/tracing"
)

func TestDecisionsAreToldInSpans(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	h := handlers(t, broken(t), running(t, inplace.ModeInPlaceOnly))
	h.Tracer = tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	req := editing(t, deployment(t, envTemplate), deployment(t, v1Template))
	response := h.handle(t.Context(), req, h.templateEdits().validateWorkload)
	h.handle(t.Context(), req, func(context.Context, admission.Request) (answer, error) { return allow(), errors.New("no answer") })

	spans := exporter.GetSpans()
	if len(spans) != 2 || spans[0].Status.Code != codes.Unset || spans[1].Status.Description != "no answer" {
		t.Fatalf("the spans are %v, want one of a decision and one of a failure", spans)
	}
	var got []string
	for _, a := range spans[0].Attributes {
		got = append(got, fmt.Sprintf("%s=%s", a.Key, a.Value.Emit()))
	}
	want := []string{"verb=update", "kind=Deployment", "namespace=" + req.Namespace, "name=" + req.Name, "user=jane", "decision=rejected",
		"reason=" + response.Result.Message, "allowed=false", "dry_run=false"}
	if !slices.Equal(got, want) {
		t.Errorf("the attributes are %q, want %q", got, want)
	}
}
