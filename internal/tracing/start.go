package tracing

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// These variables of OpenTelemetry name the endpoint to which spans are exported. Without both, tracing is off. OpenTelemetry's own code
// reads them and all others, such as OTEL_TRACES_SAMPLER.
const (
	EnvEndpoint      = "OTEL_EXPORTER_OTLP_ENDPOINT"
	EnvTraceEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
)

// Start returns a Tracer that exports by gRPC, as Kubernetes' components do, and a function that exports what is left. The Tracer is nil if
// the environment names no endpoint. Spans that cannot be exported are dropped, and the log says so.
func Start(ctx context.Context, version string, log logr.Logger) (tracer *Tracer, stop func(context.Context), err error) {
	if os.Getenv(EnvEndpoint) == "" && os.Getenv(EnvTraceEndpoint) == "" {
		return nil, func(context.Context) {}, nil
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Error(err, "Traces are not exported") }))
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("export traces to the endpoint that %s or %s names: %w", EnvEndpoint, EnvTraceEndpoint, err)
	}
	// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come last, so they prevail. The host is the pod.
	from, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "stayput"),
		attribute.String("service.version", version)), resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("read what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(from))
	stop = func(ctx context.Context) {
		if err := provider.Shutdown(ctx); err != nil {
			log.Error(err, "The last traces are not exported")
		}
	}
	return New(provider), stop, nil
}
