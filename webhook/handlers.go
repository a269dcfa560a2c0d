package webhook

import (
	"cmp"
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/internal/tracing"
	"github.com/stayput/stayput/internal/watchdog"
)

// Handlers answers the requests of all webhooks. Its fields are what it reads and asks.
type Handlers struct {
	Sources
	// Watchdog knows which requests are in progress.
	Watchdog *watchdog.Watchdog
	// Tracer may be nil.
	Tracer *tracing.Tracer

	managed managedNamespaces
	// recounts limits how often pods are counted before one more is created.
	recounts   *rate.Limiter
	retries    *retries
	holdStarts holdStarts
	// throttled are the objects about which answers are delayed, by the user of the native controller.
	throttled map[string]*throttled
}

// webhook returns the webhook with the handler. It does not recover panics: controller-runtime would answer them with a denial. A panic
// breaks the connection instead, so that failurePolicy decides.
func (h Handlers) webhook(path string, handler handler) *admission.Webhook {
	handle := func(ctx context.Context, req admission.Request) admission.Response {
		req = cut(req)
		defer h.Watchdog.Begin(watchdog.Work{Sort: "request to " + path, Namespace: req.Namespace, Name: req.Name}, limit)()
		return h.handle(ctx, req, handler)
	}
	return (&admission.Webhook{Handler: admission.HandlerFunc(handle), WithContextFunc: h.Tracer.Received}).WithRecoverPanic(false)
}

func (h Handlers) handle(ctx context.Context, req admission.Request, handler handler) admission.Response {
	ctx, span := h.Tracer.Begin(ctx, "admission")
	given, err := handler(ctx, req)
	if err != nil {
		err = briefly(err)
	}
	if err != nil && given.made != failed {
		given = undecided(err)
	}
	h.note(req, given, err)
	describe(span, req, given)
	tracing.End(span, err)
	return given.Response
}

// describe says in a span what was asked and what was answered.
func describe(span trace.Span, req admission.Request, given answer) {
	if !span.IsRecording() {
		return
	}
	reason := cmp.Or(given.Result.Message, strings.Join(given.Warnings, "; "))
	span.SetAttributes(tracing.Strings("verb", strings.ToLower(string(req.Operation)), "kind", req.Kind.Kind, "subresource", req.SubResource,
		"namespace", req.Namespace, "name", req.Name, "user", req.UserInfo.Username, "decision", string(given.made), "reason", line(reason))...)
	span.SetAttributes(attribute.Bool("allowed", given.Allowed), attribute.Bool("dry_run", req.DryRun != nil && *req.DryRun))
}

// note counts and logs the answer, except that of a dry run.
func (s Sources) note(req admission.Request, given answer, err error) {
	if req.DryRun != nil && *req.DryRun {
		return
	}
	count(req.Namespace, req.Kind.Kind, given.made)
	log := s.Log.WithValues("operation", req.Operation, "kind", req.Kind.Kind, "namespace", req.Namespace, "name", req.Name)
	switch {
	case err != nil:
		log.Error(err, "Request without a decision", "allowed", given.Allowed)
	case given.made != uncounted:
		log.V(1).Info("Request decided", "decision", given.made)
	}
}
