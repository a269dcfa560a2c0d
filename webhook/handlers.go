package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/stayput/stayput/observe"
	"github.com/stayput/stayput/tracing"
	"github.com/stayput/stayput/watchdog"
)

// Handlers answers the requests of all webhooks. Its fields are what it reads and asks.
type Handlers struct {
	// Cached reads from informers. It must fail on a kind without an informer (a strict cache) instead of starting one.
	Cached observe.Reader
	// Live reads from the API server. Its client must not limit its own rate: a native controller waits for each answer.
	Live observe.Reader
	Hold observe.Hold
	// User is the managers' own user name.
	User string
	// GateReady reports whether this process may add the readiness gate to pods: its informers are synced, and it has itself recently
	// written the status of a pod. So it can also open the gate.
	GateReady func() bool
	// APIServerOpensGates: the API server itself opens gates, with a policy (inplace/readiness). Otherwise only managers do.
	APIServerOpensGates bool
	// Watchdog knows which requests are in progress.
	Watchdog *watchdog.Watchdog
	Log      logr.Logger
	// Tracer may be nil.
	Tracer *tracing.Tracer

	lookups    *rate.Limiter
	recounts   *rate.Limiter
	retries    *retries
	holdStarts *holdStarts
	// throttled are the objects about which answers are delayed, by the user of the native controller.
	throttled map[string]*throttled
}

// Register adds each webhook to the server at its path. The server limits how many requests there are and how long each may take. The
// package documentation says what the API server calls the webhooks for.
func Register(server ctrlwebhook.Server, h Handlers) {
	h.holdStarts = newHoldStarts()
	h.throttled = throttledByUser()
	h.lookups = lookups()
	h.recounts = recounts()
	h.retries = newRetries()
	for path, route := range h.routes() {
		server.Register(path, h.webhook(path, h.handlerOf(route)))
	}
}

// handlerOf returns a handler that decides only the requests that the webhook is called for, and allows others.
func (h Handlers) handlerOf(route route) handler {
	decided := h.onlyManaged(route.handler, route.kinds...)
	if route.strict {
		return orDeny(decided)
	}
	return decided
}

// handler answers one kind of request. An error says that the request could not be decided: it is allowed unless the answer denies it.
type handler func(context.Context, admission.Request) (answer, error)

// answer is a response, and the decision that it is counted as.
type answer struct {
	admission.Response
	made decision
}

// webhook returns the webhook with the handler. It does not recover panics: controller-runtime would answer them with a denial. A panic
// breaks the connection instead, so that failurePolicy decides.
func (h Handlers) webhook(path string, handler handler) *admission.Webhook {
	handle := func(ctx context.Context, req admission.Request) admission.Response {
		defer h.Watchdog.Begin(watchdog.Work{Sort: "request to " + path, Namespace: req.Namespace, Name: req.Name}, limit)()
		return h.handle(ctx, req, handler)
	}
	return (&admission.Webhook{Handler: admission.HandlerFunc(handle), WithContextFunc: h.Tracer.Received}).WithRecoverPanic(false)
}

func (h Handlers) handle(ctx context.Context, req admission.Request, handler handler) admission.Response {
	ctx, span := h.Tracer.Begin(ctx, "admission")
	given, err := handler(ctx, req)
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
	reason := strings.Join(given.Warnings, "; ")
	if given.Result != nil && given.Result.Message != "" {
		reason = given.Result.Message
	}
	span.SetAttributes(tracing.Strings("verb", strings.ToLower(string(req.Operation)), "kind", req.Kind.Kind, "subresource", req.SubResource,
		"namespace", req.Namespace, "name", req.Name, "user", req.UserInfo.Username, "decision", string(given.made), "reason", reason)...)
	span.SetAttributes(attribute.Bool("allowed", given.Allowed), attribute.Bool("dry_run", req.DryRun != nil && *req.DryRun))
}

// note counts and logs the answer, except that of a dry run.
func (h Handlers) note(req admission.Request, given answer, err error) {
	if req.DryRun != nil && *req.DryRun {
		return
	}
	count(req.Namespace, req.Kind.Kind, given.made)
	log := h.Log.WithValues("operation", req.Operation, "kind", req.Kind.Kind, "namespace", req.Namespace, "name", req.Name)
	switch {
	case err != nil:
		log.Error(err, "Request without a decision", "allowed", given.Allowed)
	case given.made != uncounted:
		log.V(1).Info("Request decided", "decision", given.made)
	}
}

func allow() answer { return answer{Response: admission.Allowed("")} }

func undecided(err error) answer {
	warning := fmt.Sprintf("stayput: allowed without a decision: %v", err)
	return answer{Response: admission.Allowed("").WithWarnings(line(warning)), made: failed}
}

func patch(made decision, operations []jsonpatch.Operation) answer {
	return answer{Response: admission.Patched("", operations...), made: made}
}

// deny returns a denial with the status of the error: the client that made the request sees it.
func deny(made decision, why *apierrors.StatusError) answer {
	response := admissionv1.AdmissionResponse{Allowed: false, Result: &why.ErrStatus}
	return answer{Response: admission.Response{AdmissionResponse: response}, made: made}
}

// by reports whether the request is this operation by this user.
func by(req admission.Request, user string, operation admissionv1.Operation) bool {
	return req.UserInfo.Username == user && req.Operation == operation
}

// key returns the namespace and name of the object that the request is about.
func key(req admission.Request) types.NamespacedName {
	return types.NamespacedName{Namespace: req.Namespace, Name: req.Name}
}

// decode reads an object of a request as API servers do: the names of fields must match exactly, and each field may occur only once. So a
// patch finds what was read here. Every object must have metadata. Parts are the other fields that the object must have, because the
// answer may patch them.
func decode[T any](raw runtime.RawExtension, parts ...string) (*T, error) {
	decoded := new(T)
	if err := decodeInto(decoded, raw, parts...); err != nil {
		return nil, err
	}
	return decoded, nil
}

// decodeInto is decode for an object of which only the kind is known.
func decodeInto(decoded any, raw runtime.RawExtension, parts ...string) error {
	twice, err := kjson.UnmarshalStrict(raw.Raw, decoded, kjson.DisallowDuplicateFields)
	switch {
	case err != nil:
	case len(twice) > 0:
		err = twice[0]
	default:
		err = lacking(raw.Raw, append(parts, "metadata")...)
	}
	if err != nil {
		return fmt.Errorf("decode %T of the request: %w", decoded, err)
	}
	return nil
}

// lacking returns an error that names the first of the parts that is missing or no JSON object.
func lacking(raw []byte, parts ...string) error {
	var has map[string]json.RawMessage
	if err := json.Unmarshal(raw, &has); err != nil {
		return err
	}
	for _, part := range parts {
		if !bytes.HasPrefix(has[part], []byte("{")) {
			return fmt.Errorf("its %s is missing or no JSON object; API servers always send it", part)
		}
	}
	return nil
}

// lineLength is the length of a warning that kubectl and the API server still show in full (apiserver/pkg/endpoints/filters/warning.go).
const lineLength = 256

func line(text string) string {
	if len(text) <= lineLength {
		return text
	}
	return strings.ToValidUTF8(text[:lineLength-3], "") + "..."
}
