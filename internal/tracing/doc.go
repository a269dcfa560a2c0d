// Package tracing exports OpenTelemetry spans over OTLP. It is off unless the environment names an endpoint, by the variables that
// OpenTelemetry defines. Where it is off, it costs nothing.
package tracing
