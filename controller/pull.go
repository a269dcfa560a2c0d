package controller

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace"
)

// quotaReader reads the ResourceQuotas of a namespace from the API server; see observe.Reader.
type quotaReader interface {
	Quotas(ctx context.Context, namespace string) ([]corev1.ResourceQuota, error)
}

// plan asks for a plan, once more with the answer if it needs a rehearsal, and once more with what the quotas leave if pods are to be
// created.
func (r *Reconciler) plan(ctx context.Context, workload types.NamespacedName, rollout rollout) (inplace.Plan, error) {
	endpoints, err := r.drains.endpoints(ctx, workload, rollout.scene())
	if err != nil {
		return inplace.Plan{}, err
	}
	rollout.setEndpoints(endpoints)
	rollout.setAhead(r.seeAhead(workload, rollout.scene()))
	beats := r.beats.of(workload)
	if beats == nil {
		beats = inplace.Beats{}
	}
	rollout.setBeats(beats)
	plan, err := r.planWithQuotas(ctx, workload, rollout)
	r.beats.note(workload, beats.Next(plan, time.Now()))
	return plan, err
}

func (r *Reconciler) planWithQuotas(ctx context.Context, workload types.NamespacedName, rollout rollout) (inplace.Plan, error) {
	pull := rollout.pulling()
	pull.Refused = r.refusals.of(workload)
	plan := r.rehearsed(ctx, workload, rollout)
	if !slices.ContainsFunc(plan.Steps, createsPuller) {
		return plan, nil
	}
	quotas, err := r.quotas.Quotas(ctx, workload.Namespace)
	if err != nil {
		return plan, err
	}
	pull.Quotas = quotas
	return rollout.Plan(), nil
}

// seeAhead notes which pods are seen to be Ready before their kubelets say so. A restart begins anew, which is the safe side.
func (r *Reconciler) seeAhead(workload types.NamespacedName, seen scene) inplace.Ahead {
	ahead := r.aheads.of(workload).Next(seen.pods, time.Now())
	r.aheads.note(workload, ahead)
	return ahead
}

// noteRefusal notes that nothing is pulled first for a target. While there are pullers, one more that is refused says only that
// there are enough: a quota is full. A name that is taken stays so.
func (r *Reconciler) noteRefusal(workload types.NamespacedName, rollout rollout, done outcome) (noted bool) {
	created := slices.ContainsFunc(done.writes, func(w write) bool { return createsPuller(w.step) })
	enough := created || len(rollout.pulling().Pullers) > 0
	if done.unpulled.Why == "" || enough && !done.taken {
		return false
	}
	r.refusals.note(workload, done.unpulled)
	return true
}

func createsPuller(step inplace.Step) bool {
	_, creates := step.(inplace.CreatePuller)
	return creates
}

// createPuller has a name that is derived from target and node, so that a second attempt on a stale cache finds it existing. Somebody
// else's pod of that name is a refusal.
func (w writer) createPuller(ctx context.Context, step inplace.CreatePuller) (write, error) {
	puller := step.Pod.DeepCopy()
	switch err := w.client.Create(ctx, puller, FieldOwner); {
	case apierrors.IsAlreadyExists(err):
		return write{}, w.taken(ctx, puller, err)
	case isRefused(err):
		return write{}, refusal{err}
	default:
		return write{step: step, after: puller}, err
	}
}

func (w writer) deletePuller(ctx context.Context, step inplace.DeletePuller) (write, error) {
	uid, version := step.Pod.UID, step.Pod.ResourceVersion
	err := w.client.Delete(ctx, step.Pod.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version})
	return write{step: step, before: step.Pod, after: step.Pod}, err
}

// puller goes to the workload the puller pulls for, by way of the revision if that is its controller.
func (r router) puller(ctx context.Context, pod *corev1.Pod) []reconcile.Request {
	revision, err := r.reader.RevisionOf(ctx, pod)
	if err != nil {
		log.FromContext(ctx).Error(err, "Finding the ControllerRevision of a puller", "pod", client.ObjectKeyFromObject(pod))
		return nil
	}
	if revision != nil {
		return r.controllerOf(revision)
	}
	return r.controllerOf(pod)
}

func isPuller(pod *corev1.Pod) bool { return pod.Labels[inplace.LabelPuller] != "" }

// deletePullers deletes those of every workload; done unless some changed under it.
func (r releaser) deletePullers(ctx context.Context) (done bool, err error) {
	list := &corev1.PodList{}
	if err := r.reader.List(ctx, list, client.HasLabels{inplace.LabelPuller}); err != nil {
		return false, err
	}
	var steps []inplace.Step
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			steps = append(steps, inplace.DeletePuller{Pod: &list.Items[i], Why: "Stayput is being uninstalled"})
		}
	}
	all := r.writer.carryOut(ctx, types.NamespacedName{}, steps)
	return !all.outdated, all.err
}
