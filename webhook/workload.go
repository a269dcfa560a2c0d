package webhook

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-openapi/jsonpointer"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// workload is what all kinds have in common.
type workload struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Template apps.Template `json:"template"`
	} `json:"spec"`
}

// editDecision is what a template edit of a managed workload will do.
type editDecision struct {
	steps.Preview
	// kept are annotations that stay as they were although the edit changes them: see deployments.Rollout.Undone.
	kept []patches.EntryChange
	// text is the line for the decision annotation and the warning; empty if the workload is not managed.
	text string
	// mode is why it is not managed.
	mode inplace.Mode
}

// mutateWorkload keeps the decision annotation true: it says what the last template edit does. It is never what a user copied from
// another workload, or what `kubectl rollout undo` took from an old revision.
func (s Sources) mutateWorkload(ctx context.Context, req admission.Request) (answer, error) {
	now, before, err := edited(req)
	if now == nil || err != nil {
		return allow(), err
	}
	recorded, decided, warnings := before.Annotations[inplace.AnnotationDecision], editDecision{}, []string(nil)
	if edits(req, now, before) {
		if decided, err = s.decideEdit(ctx, req, now, before); err != nil {
			return allow(), err
		}
		recorded, warnings = steps.Recorded(decided.text, now.Spec.Template), decided.warnings()
	}
	response := patch(uncounted, steps.RecordDecision(now, recorded, decided.kept...))
	response.Warnings = warnings
	return response, nil
}

// validateWorkload rejects what the policy in-place-only forbids. It sees the template as the other webhooks have left it.
func (s Sources) validateWorkload(ctx context.Context, req admission.Request) (answer, error) {
	now, before, err := edited(req)
	if now == nil || err != nil || !edits(req, now, before) {
		return allow(), err
	}
	decided, err := s.decideEdit(ctx, req, now, before)
	switch {
	case err != nil || decided.text == "":
		return allow(), err
	case decided.Forbidden:
		return deny(rejected, decided.invalid(req)), nil
	}
	response := allow()
	response.made, response.Warnings = decided.decision(), decided.warnings()
	return response, nil
}

// orDeny returns the handler for in-place-only namespaces: it denies a request that cannot be decided.
func orDeny(handler handler) handler {
	return func(ctx context.Context, req admission.Request) (answer, error) {
		given, err := handler(ctx, req)
		if err != nil {
			unknown := fmt.Sprintf("stayput cannot tell whether pods would be recreated, %s: %v; try again, or set %s=%s",
				steps.NotAllowed, err, inplace.LabelUpdate, inplace.ModeNative)
			given = deny(failed, apierrors.NewServiceUnavailable(unknown))
		}
		return given, err
	}
}

// edited returns the workload after and before the request. It returns nil where the request does not concern Stayput. Before a CREATE
// the workload is empty.
func edited(req admission.Request) (now, before *workload, err error) {
	ours := req.Operation == admissionv1.Create || req.Operation == admissionv1.Update
	if !ours || req.SubResource != "" {
		return nil, nil, nil
	}
	if now, err = decode[workload](req.Object); err != nil {
		return nil, nil, err
	}
	before = &workload{}
	if req.Operation == admissionv1.Update {
		before, err = decode[workload](req.OldObject)
	}
	return now, before, err
}

func edits(req admission.Request, now, before *workload) bool {
	return req.Operation == admissionv1.Update && !apps.SameTemplate(before.Spec.Template, now.Spec.Template)
}

// decideEdit decides what a template edit will do. It reads live: template edits are rare, the answer is final, and users label a
// namespace and edit at once. It lists what the stored workload selects and controls, whatever the request says. The decision has no text
// if the workload is not managed: then only its namespace was read, so that nothing else can fail.
func (s Sources) decideEdit(ctx context.Context, req admission.Request, now, before *workload) (editDecision, error) {
	at := slices.IndexFunc(observe.Kinds, func(kind observe.Kind) bool { return kind.Workload.Name == req.Kind.Kind })
	if at < 0 {
		return editDecision{}, nil
	}
	kind := observe.Kinds[at]
	mode, err := kind.Mode(ctx, s.Live, req.Namespace, now.Labels)
	if err != nil || !mode.Manages() {
		return editDecision{mode: mode}, err
	}
	decided, err := s.decide(ctx, kind, req, before)
	if err == nil {
		decided.Autoscaler = s.aboutAutoscalers(ctx, kind, req, decided)
		decided.Duration = s.aboutDuration(ctx, kind, req, decided)
	}
	return decided, err
}

// aboutAutoscalers returns a line about the namespace's autoscalers if the edit restarts containers in place. No cache has autoscalers:
// each changes its status up to four times a minute, and edits of templates are rare.
func (s Sources) aboutAutoscalers(
	ctx context.Context, kind observe.Kind, req admission.Request, decided editDecision,
) (about string) {
	if !decided.InPlace() {
		return ""
	}
	s.aside(ctx, req, "Autoscalers", func(ctx context.Context) (err error) {
		about, err = kind.AboutAutoscalers(ctx, s.Live, key(req), decided.Change)
		return err
	})
	return about
}

// aboutDuration returns a line about how long the update takes. How long pods took to start is in the cache.
func (s Sources) aboutDuration(
	ctx context.Context, kind observe.Kind, req admission.Request, decided editDecision,
) (about string) {
	s.aside(ctx, req, "Pods", func(ctx context.Context) (err error) {
		about, err = kind.AboutDuration(ctx, s.Cached, key(req), decided.Preview)
		return err
	})
	return about
}

// addBudgets adds the PodDisruptionBudgets to what was observed.
func (s Sources) addBudgets(ctx context.Context, req admission.Request, seen *engine.Snapshot) {
	s.aside(ctx, req, "PodDisruptionBudgets", func(ctx context.Context) error { return s.Live.WithBudgets(ctx, req.Namespace, seen) })
}

// aside reads what is only worth a warning: a decision is made without it if that fails or takes longer than asidePatience.
func (s Sources) aside(ctx context.Context, req admission.Request, what string, read func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, asidePatience)
	defer cancel()
	if err := read(ctx); err != nil {
		s.Log.V(1).Info(what+" could not be read", "namespace", req.Namespace, "name", req.Name, "reason", err.Error())
	}
}

// asidePatience bounds the wait for what is only worth a warning.
const asidePatience = time.Second

func editDecisionOf(decided steps.Preview) editDecision {
	return editDecision{Preview: decided, text: decided.String()}
}

func (j editDecision) decision() decision {
	if j.InPlace() {
		return inPlace
	}
	return recreate
}

// warnings returns the same lines for both webhooks: the API server shows equal warnings once. Only users who may expect an update in place
// are told why there is none.
func (j editDecision) warnings() []string {
	switch {
	case j.mode == inplace.ModeNotOptedIn:
		return []string{line(steps.WarningPrefix + j.mode.Reason().Message)}
	case j.text == "":
		return nil
	}
	warnings := []string{line(steps.WarningPrefix + j.text)}
	for _, about := range j.Notices() {
		warnings = append(warnings, line(steps.WarningPrefix+about))
	}
	return warnings
}

// invalid returns an error in the form of the API server's own validation errors, so that kubectl shows a line per field.
func (j editDecision) invalid(req admission.Request) *apierrors.StatusError {
	var errs field.ErrorList
	for _, reason := range j.Reasons {
		errs = append(errs, field.Forbidden(fieldPath(reason), reason.Message+", "+steps.NotAllowed))
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}, req.Name, errs)
}

// fieldPath returns the JSON pointer of a reason in the notation of validation errors: spec.template.spec.containers[0].env. Pointers
// lead into the template, except those of the codes that are about the workload itself.
func fieldPath(reason inplace.Reason) *field.Path {
	var path *field.Path
	ofWorkload := []string{inplace.CodeStrategy, inplace.CodeOnDelete, inplace.CodeMaxUnavailable, inplace.CodeAnnotationList}
	if !slices.Contains(ofWorkload, reason.Code) {
		path = field.NewPath("spec", "template")
	}
	for _, token := range strings.Split(reason.Path, "/")[1:] {
		index, err := strconv.Atoi(token)
		switch {
		case err == nil:
			path = path.Index(index)
		case strings.ContainsAny(token, "~./-"): // no field has such a name, but the keys of maps do
			path = path.Key(jsonpointer.Unescape(token))
		default:
			path = path.Child(token)
		}
	}
	return path
}
