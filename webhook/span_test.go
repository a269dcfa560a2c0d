package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/internal/tracing"
)

// TestNamesOfStrangersAreCut: names are in spans and logs, and only API servers keep to the lengths that names have.
func TestNamesOfStrangersAreCut(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	exporter := tracetest.NewInMemoryExporter()
	h := handlers(t, broken(t), broken(t))
	h.Tracer = tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	var logged []string
	h.Log = funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{Verbosity: 1})
	for _, field := range []func(*admission.Request) *string{
		func(r *admission.Request) *string { return &r.Namespace },
		func(r *admission.Request) *string { return &r.Name },
		func(r *admission.Request) *string { return &r.Kind.Kind },
		func(r *admission.Request) *string { return &r.SubResource },
		func(r *admission.Request) *string { return &r.UserInfo.Username },
		func(r *admission.Request) *string { return (*string)(&r.Operation) },
	} {
		req := editing(t, deployment(t, v2Template), deployment(t, v1Template))
		*field(&req) = long
		hook := h.webhook("/", func(_ context.Context, req admission.Request) (answer, error) {
			return allow(), errors.New("no answer about " + *field(&req) + " of " + long)
		})
		hook.Handle(t.Context(), req)
	}
	for _, line := range logged {
		if len(line) > 2000 {
			t.Errorf("%d bytes are logged: %.300s...", len(line), line)
		}
	}
	for _, span := range exporter.GetSpans() {
		if size := len(fmt.Sprint(span.Attributes, span.Status, span.Events)); size > 5000 {
			t.Errorf("a span has %d bytes", size)
		}
	}
	if len(logged) == 0 || len(exporter.GetSpans()) == 0 {
		t.Error("nothing is logged or traced")
	}
}

func TestDecisionsAreToldInSpans(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	h := handlers(t, broken(t), running(t, inplace.ModeInPlaceOnly))
	h.Tracer = tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	req := editing(t, deployment(t, envTemplate), deployment(t, v1Template))
	response := h.handle(t.Context(), req, h.validateWorkload)
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

// TestAnswersAreLogged: the log says what could not be decided, and for those who look closer also what was decided, and that no leader is
// there to hold anything for. A request that Stayput has nothing to do with leaves no line.
func TestAnswersAreLogged(t *testing.T) {
	rs := markUpdating(revision(t, "web-1", v1Template, "2"))
	deletion := request(t, replicaSetController, admissionv1.Delete, nil, pod(rs))
	for name, test := range map[string]struct {
		live   client.Reader
		leases []client.Object
		req    admission.Request
		want   []string
	}{
		"a failure": {broken(t), []client.Object{lease(0)}, deletion, []string{`"Request without a decision"`}},
		"a decision": {reader(t, deployment(t, v2Template), rs), []client.Object{lease(0)}, deletion,
			[]string{`"Request decided"`}},
		"nothing to decide": {reader(t), []client.Object{lease(0)}, deletion, nil},
		"no living leader":  {reader(t), nil, deletion, []string{`"Nothing is held"`}},
	} {
		t.Run(name, func(t *testing.T) {
			var logged []string
			h := handlersWith(t, reader(t, test.leases...), broken(t), test.live)
			h.Log = funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{Verbosity: 1})
			h.handle(t.Context(), test.req, h.at("/validate-pod"))
			if !slices.EqualFunc(logged, test.want, strings.Contains) {
				t.Errorf("logged is %q, want %q", logged, test.want)
			}
		})
	}
}
