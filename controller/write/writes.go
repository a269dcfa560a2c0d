package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/tracing"
)

// FieldOwner is the field manager of Stayput's writes in managedFields.
const FieldOwner = client.FieldOwner("stayput")

// Done is a step that was carried out, with the object that the plan was made on, and the object that the API server
// returned.
type Done struct {
	Step          steps.Step
	Before, After client.Object // Before is nil for an object that the step created
}

// Refusal is the error of a write that the API server understood and checked against the current object, but does not
// accept: because of an admission policy, validation or RBAC. A retry does not help.
type Refusal struct{ error }

// Reason returns why an update falls back if one of its writes was refused.
func (r Refusal) Reason() inplace.Reason {
	return inplace.Reason{Code: inplace.CodeRefused, Message: r.Error()}
}

// Writer carries steps out.
type Writer struct {
	Client client.Client
	// Live reads the API server itself.
	Live client.Reader
	// Fallbacks names the ConfigMap with the persisted fallbacks.
	Fallbacks types.NamespacedName
	// Turns are shared by all Writers of the process; nil if writes need not wait.
	Turns *Turns
}

// ErrTermOver is the cause with which a context for writes ends when the leader's Lease ends. Only a leader may make
// these writes.
var ErrTermOver = errors.New("the leader's Lease has ended")

// Outcome is the result of carrying out steps.
type Outcome struct {
	Writes []Done
	// Outdated is whether a step was planned on an object that has changed since, or came after the leader's Lease ended.
	// The event of the newer version enqueues the workload again. Or other writes came first for too long.
	Outdated bool
	// Late: nothing was written, at least partly because other writes came first. That is neither a failure nor a success.
	Late bool
	// Unpulled says that the API server refused a pre-pull pod. Taken is whether that is because another pod has its name.
	Unpulled prepull.Refused
	Taken    bool
	Err      error
}

// CarryOut makes the steps. Steps do not build on one another, so one that fails does not stop the others. Outdated
// steps are no errors.
func (w Writer) CarryOut(ctx context.Context, todo []steps.Step) Outcome {
	var done Outcome
	planned := time.Now()
	for _, lot := range steps.Lots(todo) {
		slices.SortStableFunc(lot, urgentFirst)
		made := make([]attempt, len(lot))
		// When the context ends, each step fails by itself.
		workqueue.ParallelizeUntil(context.WithoutCancel(ctx), concurrency.MostWrites, len(lot), func(i int) {
			made[i] = w.attempt(ctx, planned, lot[i])
		})
		for i, made := range made {
			switch {
			case made.err == nil:
				done.Writes = append(done.Writes, made.Done)
			case IsOutdated(made.err), errors.Is(context.Cause(ctx), ErrTermOver):
				done.Outdated = true
			case errors.Is(made.err, errNoTurn):
				done.Outdated, done.Late = true, true
			default:
				done.fail(lot[i], made.err)
			}
		}
	}
	done.Late = done.Late && len(done.Writes) == 0
	return done
}

// urgentFirst orders the steps of a lot. Only so many wait for their turns at a time, and urgent ones must not wait behind them.
func urgentFirst(a, b steps.Step) int { return inplace.TrueFirst(steps.Urgent(a), steps.Urgent(b)) }

// attempt is the result of one step.
type attempt struct {
	Done
	err error
}

// attempt makes one step. A panic counts as a failure of this workload, as it does in Reconcile. It does not end the
// updates of other workloads.
func (w Writer) attempt(ctx context.Context, planned time.Time, step steps.Step) (made attempt) {
	defer func() {
		if cause := recover(); cause != nil {
			made.err = fmt.Errorf("panic: %v [recovered]\n%s", cause, debug.Stack())
		}
	}()
	ctx, span := w.begin(ctx, step)
	defer func() { tracing.End(span, made.err) }()
	turn, err := w.turn(ctx, planned, step)
	if err != nil {
		return attempt{err: err}
	}
	defer func() { turn.done(made.err) }()
	span.AddEvent("its turn")
	made.Done, made.err = w.Carry(ctx, step)
	return made
}

// fail notes a failure. A refused pre-pull pod is no error, because the update goes on without it, and neither is a pod that may not say
// what becomes of its request.
func (o *Outcome) fail(step steps.Step, err error) {
	creates, ok := step.(steps.CreatePrePullPod)
	refused := Refusal{}
	if patch, is := step.(steps.PatchPod); is && patch.Answers && errors.As(err, &refused) {
		return
	}
	if ok && errors.As(err, &refused) {
		o.Unpulled = prepull.Refused{UpdateRevision: creates.UpdateRevision, Why: err.Error()}
		o.Taken = o.Taken || apierrors.IsAlreadyExists(refused.error)
		return
	}
	o.Err = errors.Join(o.Err, fmt.Errorf("%s: %w", step.Describe(), err))
}

// Carry makes one step, without waiting for other writes. It decodes the response to a patch into an empty object: decoding
// into a filled one would keep removed map keys.
func (w Writer) Carry(ctx context.Context, step steps.Step) (Done, error) {
	switch s := step.(type) {
	case steps.CreateReplicaSet:
		return w.createReplicaSet(ctx, s)
	case steps.PatchReplicaSet:
		return w.patch(ctx, s, s.ReplicaSet, &apps.ReplicaSet{}, s.Operations)
	case steps.PatchRevision:
		return w.patch(ctx, s, s.Revision, &apps.ControllerRevision{}, s.Operations)
	case steps.PatchPod:
		return w.patchPod(ctx, s)
	case steps.SetReady:
		return w.patch(ctx, s, s.Pod, &corev1.Pod{}, s.Operations)
	case steps.CreatePrePullPod:
		return w.create(ctx, s, s.Pod.DeepCopy())
	case steps.DeletePrePullPod:
		return w.deletePrePullPod(ctx, s)
	case steps.PersistFallback:
		changed, err := w.updateFallbacks(ctx, func(fallbacks revisions.Fallbacks) { fallbacks.Add(s.Workload, s.Fallback, time.Now()) })
		return Done{Step: s, After: changed}, err
	case steps.ForgetFallback:
		changed, err := w.updateFallbacks(ctx, func(fallbacks revisions.Fallbacks) { fallbacks.Remove(s.Workload.GetUID()) })
		return Done{Step: s, After: changed}, err
	case steps.PatchStatus:
		return w.patch(ctx, s, s.Deployment, &apps.Deployment{}, s.Operations)
	default:
		return Done{}, fmt.Errorf("unknown kind of step %T", step)
	}
}

// patchPod patches a pod. If the API server refuses that, it takes the step's Instead.
func (w Writer) patchPod(ctx context.Context, s steps.PatchPod) (Done, error) {
	done, err := w.patch(ctx, s, s.Pod, &corev1.Pod{}, s.Operations)
	if refused := (Refusal{}); s.Instead != nil && errors.As(err, &refused) {
		return w.patchPod(ctx, s.Instead(err.Error()))
	}
	return done, err
}

// updateFallbacks changes the persisted fallbacks. It retries on conflict, because several workloads may fall back at
// the same time.
func (w Writer) updateFallbacks(ctx context.Context, change func(revisions.Fallbacks)) (*corev1.ConfigMap, error) {
	var fallbacks *corev1.ConfigMap
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		fallbacks = &corev1.ConfigMap{} // decoding into a filled one would keep removed map keys
		if err := w.Live.Get(ctx, w.Fallbacks, fallbacks); err != nil {
			return err
		}
		if fallbacks.Data == nil {
			fallbacks.Data = map[string]string{}
		}
		change(fallbacks.Data)
		return w.Client.Update(ctx, fallbacks, FieldOwner)
	})
	return fallbacks, err
}

// createReplicaSet creates a ReplicaSet from raw JSON, so that fields newer than Stayput's types are kept.
func (w Writer) createReplicaSet(ctx context.Context, step steps.CreateReplicaSet) (Done, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(step.Object); err != nil {
		return Done{}, fmt.Errorf("decoding ReplicaSet %s: %w", step.Name, err)
	}
	return w.create(ctx, step, object)
}

// create creates an object. The name of a ReplicaSet is derived from its template, that of a pre-pull pod from the update revision and the
// node. So a second attempt on an outdated cache finds that the object exists, and does not create another.
func (w Writer) create(ctx context.Context, step steps.Step, object client.Object) (Done, error) {
	switch err := w.Client.Create(ctx, object, FieldOwner); {
	case apierrors.IsAlreadyExists(err):
		return Done{}, w.taken(ctx, object, err)
	case IsRefused(err):
		return Done{}, Refusal{err}
	case err != nil:
		return Done{}, err
	}
	return Done{Step: step, After: object}, nil
}

// taken returns the error of a create whose name is taken. If the existing object is the wanted one, and only the cache
// does not show it yet, that is err itself. If another client created it, it is a Refusal: the native controller then
// finds another name for a ReplicaSet, and images are not pulled in advance without a pre-pull pod.
func (w Writer) taken(ctx context.Context, wanted client.Object, err error) error {
	current, getErr := w.Current(ctx, wanted)
	if getErr != nil {
		return errors.Join(err, client.IgnoreNotFound(getErr))
	}
	has, wants := metav1.GetControllerOf(current), metav1.GetControllerOf(wanted)
	if has != nil && has.UID == wants.UID && current.GetLabels()[inplace.LabelPrePull] == wanted.GetLabels()[inplace.LabelPrePull] {
		return err
	}
	return Refusal{err}
}

// Operations is a JSON patch that implements client.Patch.
type Operations []jsonpatch.Operation

// Type implements client.Patch.
func (Operations) Type() types.PatchType { return types.JSONPatchType }

// Data implements client.Patch.
func (o Operations) Data(client.Object) ([]byte, error) {
	return json.Marshal([]jsonpatch.Operation(o))
}

// patch applies the operations to the object, or to the subresource that the step writes. The operations include the guard.
func (w Writer) patch(ctx context.Context, step steps.Step, before, after client.Object, operations []jsonpatch.Operation) (Done, error) {
	after.SetNamespace(before.GetNamespace())
	after.SetName(before.GetName())
	var err error
	if subresource := w.writtenBy(step).subresource; subresource == "" {
		err = w.Client.Patch(ctx, after, Operations(operations), FieldOwner)
	} else {
		err = w.Client.SubResource(subresource).Patch(ctx, after, Operations(operations), FieldOwner)
	}
	if err != nil {
		return Done{}, w.classify(ctx, before, err)
	}
	return Done{Step: step, Before: before, After: after}, nil
}

// classify tells a patch that the API server will never accept from a patch that came too late. The API server answers
// 422, as for a refusal, if a guard does not match, or if an operation does not fit the object (such as for a label
// that was removed meanwhile). It does so before it compares versions (apiserver/pkg/endpoints/handlers/patch.go,
// applyJSPatch). So only a patch of an object that has not changed counts as refused.
func (w Writer) classify(ctx context.Context, planned client.Object, err error) error {
	if !IsRefused(err) {
		return err
	}
	current, getErr := w.Current(ctx, planned)
	switch {
	case client.IgnoreNotFound(getErr) != nil:
		return errors.Join(err, getErr)
	case getErr == nil && current.GetResourceVersion() == planned.GetResourceVersion():
		return Refusal{err}
	default:
		return outdatedError{err}
	}
}

// Current returns the metadata that an object has now.
func (w Writer) Current(ctx context.Context, object client.Object) (*metav1.PartialObjectMetadata, error) {
	kind, err := apiutil.GVKForObject(object, w.Client.Scheme())
	if err != nil {
		return nil, err
	}
	current := &metav1.PartialObjectMetadata{}
	current.SetGroupVersionKind(kind)
	return current, w.Live.Get(ctx, client.ObjectKeyFromObject(object), current)
}

// IsRefused reports whether a repetition of the request could only get the same answer. That is so for any 4xx that is
// not about timing, load or authentication. Admission webhooks may choose any code.
func IsRefused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusGone,
		http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// outdatedError is the error of a write that was planned on an object which has changed since.
type outdatedError struct{ error }

// IsOutdated reports whether the object was not what the step was planned on, or no longer is.
func IsOutdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || errors.As(err, new(outdatedError))
}
