package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
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
)

// FieldOwner is the name under which Stayput's writes stand in managedFields.
const FieldOwner = client.FieldOwner("stayput")

// write is a step that was carried out: the object as it was planned on and as the API server returned it.
type write struct {
	step          inplace.Step
	before, after client.Object // before is nil for an object we created
}

// refusal is the error of a write that the API server understood, saw on the current object and will not take: admission
// policy, validation, RBAC. Trying again is no use.
type refusal struct{ error }

func (r refusal) reason() inplace.Reason {
	return inplace.Reason{Code: inplace.CodeRefused, Message: r.Error()}
}

// writer carries steps out.
type writer struct {
	client client.Client
	// live reads the API server itself.
	live   client.Reader
	memory *memory
	// lease is where releases are recorded.
	lease types.NamespacedName
}

// outcome is what became of steps.
type outcome struct {
	writes []write
	// outdated: a step was made on an object that has changed since. Its newer version wakes us.
	outdated bool
	// unpulled: the API server refused a puller. taken: because somebody else's pod has its name.
	unpulled inplace.Refused
	taken    bool
	err      error
}

// carryOut makes the steps, each whatever becomes of the others: they do not build on one another. Outdated ones are passed over.
func (w writer) carryOut(ctx context.Context, workload types.NamespacedName, steps []inplace.Step) outcome {
	var done outcome
	for _, lot := range inplace.Together(steps) {
		for i, made := range w.together(ctx, lot) {
			switch {
			case made.err == nil:
				w.memory.remember(workload, made.after)
				done.writes = append(done.writes, made.write)
			case isOutdated(made.err):
				done.outdated = true
			default:
				done.fail(lot[i], made.err)
			}
		}
	}
	return done
}

// attempt is what became of one step.
type attempt struct {
	write
	err error
}

// together makes the steps side by side, and returns what became of each. When the context ends, each fails by itself.
func (w writer) together(ctx context.Context, steps []inplace.Step) []attempt {
	made := make([]attempt, len(steps))
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), atATime, len(steps), func(i int) {
		made[i] = w.attempt(ctx, steps[i])
	})
	return made
}

// attempt makes one step. A panic is a failure of this workload, as it is in Reconcile, and ends nobody else's updates.
func (w writer) attempt(ctx context.Context, step inplace.Step) (made attempt) {
	defer func() {
		if cause := recover(); cause != nil {
			made.err = fmt.Errorf("panic: %v [recovered]\n%s", cause, debug.Stack())
		}
	}()
	done, err := w.carry(ctx, step)
	return attempt{done, err}
}

// fail notes what went wrong. A puller that is refused is no error: the update goes on without.
func (o *outcome) fail(step inplace.Step, err error) {
	creates, ok := step.(inplace.CreatePuller)
	if refused := (refusal{}); ok && errors.As(err, &refused) {
		o.unpulled = inplace.Refused{Target: creates.Target, Why: err.Error()}
		o.taken = o.taken || apierrors.IsAlreadyExists(refused.error)
		return
	}
	o.err = errors.Join(o.err, fmt.Errorf("%s: %w", step.Describe(), err))
}

// carry makes one step. Patches are decoded into empty objects: into a filled one, decoding would keep removed map keys.
func (w writer) carry(ctx context.Context, step inplace.Step) (write, error) {
	switch s := step.(type) {
	case inplace.CreateReplicaSet:
		return w.create(ctx, s)
	case inplace.PatchReplicaSet:
		return w.patch(ctx, s, w.client, s.ReplicaSet, &inplace.ReplicaSet{}, s.Operations)
	case inplace.PatchRevision:
		return w.patch(ctx, s, w.client, s.Revision, &inplace.ControllerRevision{}, s.Operations)
	case inplace.PatchPod:
		return w.patch(ctx, s, w.client, s.Pod, &corev1.Pod{}, s.Operations)
	case inplace.SetGate:
		return w.patch(ctx, s, statusPatcher{w.client}, s.Pod, &corev1.Pod{}, s.Operations)
	case inplace.CreatePuller:
		return w.createPuller(ctx, s)
	case inplace.DeletePuller:
		return w.deletePuller(ctx, s)
	case inplace.RecordRelease:
		return w.record(ctx, s, func(records inplace.Records) { records.Add(s.Workload.GetUID(), s.Record, time.Now()) })
	case inplace.ForgetRelease:
		return w.record(ctx, s, func(records inplace.Records) { records.Remove(s.Workload.GetUID()) })
	case inplace.PatchStatus:
		return w.patch(ctx, s, statusPatcher{w.client}, s.Deployment, &inplace.Deployment{}, s.Operations)
	default:
		return write{}, fmt.Errorf("unknown kind of step %T", step)
	}
}

// record changes the releases on record. Whoever leads renews the Lease at the same time.
func (w writer) record(ctx context.Context, step inplace.Step, change func(inplace.Records)) (write, error) {
	var lease *coordinationv1.Lease
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		lease = &coordinationv1.Lease{} // into a filled one, decoding would keep removed map keys
		if err := w.live.Get(ctx, w.lease, lease); err != nil {
			return err
		}
		if lease.Annotations == nil {
			lease.Annotations = map[string]string{}
		}
		change(lease.Annotations)
		return w.client.Update(ctx, lease, FieldOwner)
	})
	return write{step: step, after: lease}, err
}

// create makes the object from the raw JSON, so that fields newer than our types are kept. Its name is derived from the
// template, so a second attempt on a stale cache finds it existing instead of making another.
func (w writer) create(ctx context.Context, step inplace.CreateReplicaSet) (write, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(step.Object); err != nil {
		return write{}, fmt.Errorf("decoding ReplicaSet %s: %w", step.Name, err)
	}
	switch err := w.client.Create(ctx, object, FieldOwner); {
	case apierrors.IsAlreadyExists(err):
		return write{}, w.taken(ctx, object, err)
	case isRefused(err):
		return write{}, refusal{err}
	case err != nil:
		return write{}, err
	}
	return write{step: step, after: object}, nil
}

// taken tells an object of ours that only our cache does not show yet from somebody else's, which keeps ours from being created: the
// native controller finds another name for a ReplicaSet, and nothing is pulled first without a puller.
func (w writer) taken(ctx context.Context, wanted client.Object, err error) error {
	current, getErr := w.current(ctx, wanted)
	if getErr != nil {
		return errors.Join(err, client.IgnoreNotFound(getErr))
	}
	has, wants := metav1.GetControllerOf(current), metav1.GetControllerOf(wanted)
	if has != nil && has.UID == wants.UID && current.GetLabels()[inplace.LabelPuller] == wanted.GetLabels()[inplace.LabelPuller] {
		return err
	}
	return refusal{err}
}

// patcher patches objects, or their status.
type patcher interface {
	Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error
}

type statusPatcher struct{ client client.Client }

func (p statusPatcher) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	subresource := &client.SubResourcePatchOptions{PatchOptions: *(&client.PatchOptions{}).ApplyOptions(options)}
	return p.client.Status().Patch(ctx, object, patch, subresource)
}

// patch applies the operations to the object, which they guard by its resourceVersion.
func (w writer) patch(ctx context.Context, step inplace.Step, to patcher, before, after client.Object, operations []jsonpatch.Operation) (write, error) {
	body, err := json.Marshal(operations)
	if err != nil {
		return write{}, fmt.Errorf("encoding the patch: %w", err)
	}
	after.SetNamespace(before.GetNamespace())
	after.SetName(before.GetName())
	if err := to.Patch(ctx, after, client.RawPatch(types.JSONPatchType, body), FieldOwner); err != nil {
		return write{}, w.judge(ctx, before, err)
	}
	return write{step: step, before: before, after: after}, nil
}

// judge tells a patch that will never be taken from one that came too late. An operation that no longer fits its object
// (a label removed meanwhile) is answered 422, like a refusal, before versions are compared
// (apiserver/pkg/endpoints/handlers/patch.go, applyJSPatch); so refused is only what the object is still the same for.
func (w writer) judge(ctx context.Context, planned client.Object, err error) error {
	if !isRefused(err) {
		return err
	}
	same, getErr := w.isCurrent(ctx, planned)
	switch {
	case getErr != nil:
		return errors.Join(err, getErr)
	case same:
		return refusal{err}
	default:
		return outdatedError{err}
	}
}

// isCurrent tells whether the object still is as it was read.
func (w writer) isCurrent(ctx context.Context, object client.Object) (bool, error) {
	current, err := w.current(ctx, object)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return current.GetResourceVersion() == object.GetResourceVersion(), nil
}

// current reads the metadata an object has now.
func (w writer) current(ctx context.Context, object client.Object) (*metav1.PartialObjectMetadata, error) {
	kind, err := apiutil.GVKForObject(object, w.client.Scheme())
	if err != nil {
		return nil, err
	}
	current := &metav1.PartialObjectMetadata{}
	current.SetGroupVersionKind(kind)
	return current, w.live.Get(ctx, client.ObjectKeyFromObject(object), current)
}

// isRefused tells whether repeating the request as it is could only get the same answer: any 4xx that is not about timing,
// load or who we are. Admission webhooks choose their code freely.
func isRefused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusGone, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// outdatedError is an error that came of planning on an object which has changed since.
type outdatedError struct{ error }

// isOutdated tells whether the object was not, or no longer, what the step was planned on.
func isOutdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || errors.As(err, new(outdatedError))
}
