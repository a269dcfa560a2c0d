package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
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
	"github.com/stayput/stayput/watchdog"
)

// Handlers is what the webhooks ask.
type Handlers struct {
	// Cached reads from informers. It must fail on kinds without one (a strict cache) instead of starting it.
	Cached observe.Reader
	// Live reads from the API server. Its client must not limit its own rate: a native controller waits for each answer.
	Live observe.Reader
	Hold observe.Hold
	// GateReady reports whether this process may give pods the readiness gate: its informers are synced and it has itself
	// recently written the status of a pod, so that somebody will open the gate.
	GateReady func() bool
	// Watchdog knows which requests are being judged.
	Watchdog *watchdog.Watchdog
	Log      logr.Logger

	lookups    *rate.Limiter
	recounts   *rate.Limiter
	retries    *retries
	holdStarts *holdStarts
	// throttled are whose answers are late, by native controller.
	throttled map[string]*throttled
}

// Register adds the webhooks to the server, which bounds how many requests there are and how long they may take, each at its path; see the package's
// documentation for what calls them.
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

// handlerOf has the webhook judge what it is called for, and nothing else.
func (h Handlers) handlerOf(route route) handler {
	decided := h.ours(route.handler, route.kinds...)
	if route.strict {
		return orDeny(decided)
	}
	return decided
}

// handler answers one kind of request. With an error, the request could not be judged: it is allowed unless the answer denies it.
type handler func(context.Context, admission.Request) (answer, error)

// answer is a response and the word it is counted under.
type answer struct {
	admission.Response
	made decision
}

// webhook does not recover panics: controller-runtime would answer them with a denial, a broken connection is left to failurePolicy.
func (h Handlers) webhook(path string, handler handler) *admission.Webhook {
	handle := func(ctx context.Context, req admission.Request) admission.Response {
		defer h.Watchdog.Begin(watchdog.Work{Sort: "request to " + path, Namespace: req.Namespace, Name: req.Name}, limit)()
		return h.handle(ctx, req, handler)
	}
	return (&admission.Webhook{Handler: admission.HandlerFunc(handle)}).WithRecoverPanic(false)
}

func (h Handlers) handle(ctx context.Context, req admission.Request, handler handler) admission.Response {
	given, err := handler(ctx, req)
	if err != nil && given.made != failed {
		given = undecided(err)
	}
	h.fallback(req, given, err)
	return given.Response
}

// fallback leaves no trace of a dry run.
func (h Handlers) fallback(req admission.Request, given answer, err error) {
	if req.DryRun != nil && *req.DryRun {
		return
	}
	count(req.Kind.Kind, given.made)
	log := h.Log.WithValues("operation", req.Operation, "kind", req.Kind.Kind, "namespace", req.Namespace, "name", req.Name)
	switch {
	case err != nil:
		log.Error(err, "Request without a decision", "allowed", given.Allowed)
	case given.made != notOurs:
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

// deny answers with the error's own status, which is the one the requesting client gets to see.
func deny(made decision, why *apierrors.StatusError) answer {
	response := admissionv1.AdmissionResponse{Allowed: false, Result: &why.ErrStatus}
	return answer{Response: admission.Response{AdmissionResponse: response}, made: made}
}

// by reports whether the request is that operation by that user.
func by(req admission.Request, user string, operation admissionv1.Operation) bool {
	return req.UserInfo.Username == user && req.Operation == operation
}

// key is the object that the request is about.
func key(req admission.Request) types.NamespacedName {
	return types.NamespacedName{Namespace: req.Namespace, Name: req.Name}
}

// decode reads an object of a request as API servers read one: names of fields are exact, and there once, so that a patch finds what was read here. Every
// object has metadata; parts are what else it has to have, as the answer may patch it.
func decode[T any](raw runtime.RawExtension, parts ...string) (*T, error) {
	decoded := new(T)
	twice, err := kjson.UnmarshalStrict(raw.Raw, decoded, kjson.DisallowDuplicateFields)
	switch {
	case err != nil:
	case len(twice) > 0:
		err = twice[0]
	default:
		err = lacking(raw.Raw, append(parts, "metadata")...)
	}
	if err != nil {
		return nil, fmt.Errorf("decode %T of the request: %w", decoded, err)
	}
	return decoded, nil
}

// lacking says which of the parts is not there.
func lacking(raw []byte, parts ...string) error {
	var has map[string]json.RawMessage
	if err := json.Unmarshal(raw, &has); err != nil {
		return err
	}
	for _, part := range parts {
		if !bytes.HasPrefix(has[part], []byte("{")) {
			return fmt.Errorf("its %s is no JSON object; API servers send none without", part)
		}
	}
	return nil
}

// lineLength keeps a warning within what kubectl and the API server show in full (apiserver/pkg/endpoints/filters/warning.go).
const lineLength = 256

func line(text string) string {
	if len(text) <= lineLength {
		return text
	}
	return strings.ToValidUTF8(text[:lineLength-3], "") + "..."
}
