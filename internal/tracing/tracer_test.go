package tracing

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// inMemory returns a Tracer and what it has exported.
func inMemory() (*Tracer, *tracetest.InMemoryExporter) {
	exporter := tracetest.NewInMemoryExporter()
	return New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))), exporter
}

// traced makes a span with one within it, as a reconcile does.
func traced(ctx context.Context, tracer *Tracer) {
	ctx, outer := tracer.Begin(ctx, "reconcile")
	_, inner := Within(ctx, "write")
	if inner.IsRecording() {
		inner.SetAttributes(Strings("verb", "patch", "subresource", "", "name", "web")...)
	}
	End(inner, errRefused)
	End(outer, nil)
}

var errRefused = errors.New("refused")

func TestSpans(t *testing.T) {
	tracer, exporter := inMemory()
	traced(t.Context(), tracer)
	spans := exporter.GetSpans()
	if len(spans) != 2 || spans[0].Name != "write" || spans[1].Name != "reconcile" {
		t.Fatalf("the spans are %v, want write within reconcile", spans)
	}
	inner, outer := spans[0], spans[1]
	if inner.Parent.SpanID() != outer.SpanContext.SpanID() {
		t.Error("write is not within reconcile")
	}
	if inner.Status.Code != codes.Error || inner.Status.Description != "refused" || outer.Status.Code != codes.Unset {
		t.Errorf("the statuses are %v and %v", inner.Status, outer.Status)
	}
	want := attribute.NewSet(attribute.String("verb", "patch"), attribute.String("name", "web"))
	if got := attribute.NewSet(inner.Attributes...); got != want {
		t.Errorf("the attributes are %v, want %v", inner.Attributes, want)
	}
}

func TestTracingThatIsOffCostsNothing(t *testing.T) {
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { traced(ctx, nil) }); n != 0 {
		t.Errorf("it allocates %v times, want none", n)
	}
	on, _ := inMemory()
	if n := testing.AllocsPerRun(100, func() { traced(ctx, on) }); n == 0 {
		t.Error("this test cannot tell")
	}
}

// TestReceivedSpan continues the trace of an API server.
func TestReceivedSpan(t *testing.T) {
	const traceID, spanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	request := &http.Request{Header: http.Header{"Traceparent": {"00-" + traceID + "-" + spanID + "-01"}}}
	tracer, exporter := inMemory()
	traced(tracer.Received(t.Context(), request), tracer)
	outer := exporter.GetSpans()[1]
	if outer.SpanContext.TraceID().String() != traceID || outer.Parent.SpanID().String() != spanID {
		t.Errorf("the trace is %s below %s", outer.SpanContext.TraceID(), outer.Parent.SpanID())
	}
	if off := (*Tracer)(nil).Received(t.Context(), request); off != t.Context() {
		t.Error("tracing that is off has another context")
	}
}

// receiver is an OTLP receiver, as collectors have.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	got chan *collector.ExportTraceServiceRequest
}

// Export implements the OTLP service.
func (r receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.got <- request
	return &collector.ExportTraceServiceResponse{}, nil
}

// receive starts a receiver, and returns its address.
func receive(t *testing.T) (address string, got <-chan *collector.ExportTraceServiceRequest) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := receiver{got: make(chan *collector.ExportTraceServiceRequest, 1)}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String(), r.got
}

func TestExport(t *testing.T) {
	address, got := receive(t)
	t.Setenv(EnvEndpoint, "http://"+address)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=test")
	tracer, stop, err := Start(t.Context(), "v1.2.3", logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	traced(t.Context(), tracer)
	stop(t.Context())
	exported := (<-got).GetResourceSpans()[0]
	resource := map[string]string{}
	for _, of := range exported.GetResource().GetAttributes() {
		resource[of.GetKey()] = of.GetValue().GetStringValue()
	}
	for name, want := range map[string]string{"service.name": "stayput", "service.version": "v1.2.3", "k8s.cluster.name": "test"} {
		if resource[name] != want {
			t.Errorf("%s is %q, want %q", name, resource[name], want)
		}
	}
	if spans := exported.GetScopeSpans()[0].GetSpans(); len(spans) != 2 || spans[0].GetName() != "write" {
		t.Errorf("the spans are %v, want write and reconcile", spans)
	}
}

func TestTracingIsOffByDefault(t *testing.T) {
	t.Setenv(EnvEndpoint, "")
	t.Setenv(EnvTraceEndpoint, "")
	tracer, stop, err := Start(t.Context(), "v1.2.3", logr.Discard())
	if tracer != nil || err != nil {
		t.Errorf("without an endpoint there is a tracer, or an error: %v", err)
	}
	stop(t.Context())
}
