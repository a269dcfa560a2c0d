package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/stayput/stayput/internal/tracing"
)

// told returns each span as its name and its attributes, in order of names.
func told(spans tracetest.SpanStubs) (all []string) {
	for _, span := range spans {
		var attributes []string
		for _, a := range span.Attributes {
			attributes = append(attributes, fmt.Sprintf("%s=%s", a.Key, a.Value.Emit()))
		}
		all = append(all, span.Name+": "+strings.Join(attributes, ", "))
	}
	slices.Sort(all)
	return all
}

func TestReconcileTellsInSpans(t *testing.T) {
	c := newCluster(t)
	r := c.reconciler(nil)
	c.start(r)
	exporter := tracetest.NewInMemoryExporter()
	r.tracer = tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	c.reconcile(r)
	want := []string{
		"plan: phase=Updating, message=0 of 3 pods updated, 0 in progress, steps=3",
		"reconcile: kind=Deployment, namespace=shop, name=web",
		"snapshot: pods=3, mode=in-place",
		"write: verb=patch, kind=Deployment, subresource=status, namespace=shop, name=web, " +
			"reason=Deployment web: status 0/3 updated, 3 available",
		"write: verb=patch, kind=ReplicaSet, namespace=shop, name=web-new, reason=ReplicaSet web-new: marks",
		"write: verb=patch, kind=ReplicaSet, namespace=shop, name=web-old, reason=ReplicaSet web-old: marks",
	}
	spans := exporter.GetSpans()
	if got := told(spans); !slices.Equal(got, want) {
		t.Errorf("the spans are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	outer := spans[len(spans)-1]
	for _, span := range spans[:len(spans)-1] {
		if span.Parent.SpanID() != outer.SpanContext.SpanID() {
			t.Errorf("%s is not within the reconcile", span.Name)
		}
	}
}
