package tracing

import (
	"context"
	"net/http"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// scope is the name of the instrumentation scope of all spans.
const scope = "github.com/stayput/stayput"

// Tracer begins traces. The nil Tracer begins none.
type Tracer struct{ tracer trace.Tracer }

// New returns a Tracer of the provider.
func New(provider trace.TracerProvider) *Tracer { return &Tracer{provider.Tracer(scope)} }

// Begin begins a span that has no span of this process above it. If a request brought a span, that one is above it.
//
// Set attributes only if the span is recording: otherwise, to make them costs something although tracing is off.
func (t *Tracer) Begin(ctx context.Context, name string) (context.Context, trace.Span) {
	if t == nil {
		return ctx, trace.SpanFromContext(ctx)
	}
	return t.tracer.Start(ctx, name)
}

// Within begins a span within the span of the context, if that is recorded.
func Within(ctx context.Context, name string) (context.Context, trace.Span) {
	above := trace.SpanFromContext(ctx)
	if !above.IsRecording() {
		return ctx, above // to end a span that is not recorded does nothing
	}
	return above.TracerProvider().Tracer(scope).Start(ctx, name)
}

// Strings returns attributes from names and values in turn, without those that have no value.
func Strings(pairs ...string) (all []attribute.KeyValue) {
	for pair := range slices.Chunk(pairs, 2) {
		if name, value := pair[0], pair[1]; value != "" {
			all = append(all, attribute.String(name, value))
		}
	}
	return all
}

// End ends a span with the error of what it is about; nil if it succeeded.
func End(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// Received returns a context with the span that a request brought, as API servers send it that trace their own requests.
func (t *Tracer) Received(ctx context.Context, request *http.Request) context.Context {
	if t == nil {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(request.Header))
}
