package webhook

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/observe"
)

// The users of the native controllers of Deployments and of ReplicaSets.
const (
	deploymentController = "system:serviceaccount:kube-system:deployment-controller"
	replicaSetController = "system:serviceaccount:kube-system:replicaset-controller"
)

// deploymentKind: the Deployment controller scales ReplicaSets, deletes old ones and reports the status. The ReplicaSet controller
// creates and deletes pods.
var deploymentKind = kind{
	Kind:       observe.Deployments,
	podsBy:     replicaSetController,
	decideEdit: Handlers.decideDeployment,
	stays:      Handlers.updating,
	refuse:     notFound, // manageReplicas in pkg/controller/replicaset/replica_set.go takes the pod as gone, without event or back-off
	futile:     Handlers.surplusPasses,
	throttle:   throttle,
	further: func(h Handlers) map[string]route {
		user := []string{deploymentController}
		return map[string]route{
			"/mutate-replicaset":   {handler: h.mutateReplicaSet, kinds: []string{"ReplicaSet"}, users: user},
			"/validate-replicaset": {handler: h.validateReplicaSet, kinds: []string{"ReplicaSet", "Scale"}, users: user},
			"/throttle-replicaset": {handler: h.throttleScaling, kinds: []string{"ReplicaSet"}, users: user},
			"/validate-status":     {handler: h.validateStatus, kinds: []string{"Deployment"}, users: user},
		}
	},
}

func (h Handlers) decideDeployment(ctx context.Context, req admission.Request, before *workload) (editDecision, error) {
	deployment, err := decode[apps.Deployment](req.Object)
	if err != nil {
		return editDecision{}, err
	}
	stored, err := h.Live.Deployment(ctx, key(req))
	if stored == nil || err != nil {
		return editDecision{}, err
	}
	deployment.Namespace, deployment.UID, deployment.Spec.Selector = stored.Namespace, stored.UID, stored.Spec.Selector
	rollout, kept, err := h.undone(ctx, req, deployment, before)
	if err != nil || !rollout.Seen.Mode.Manages() {
		return editDecision{}, err
	}
	h.addBudgets(ctx, req, &rollout.Seen)
	decided := editDecisionOf(rollout.DecideEdit(before.Spec.Template))
	decided.kept = kept
	return decided, nil
}

// undone reads the rollout of an edited Deployment. If the edit is an undo, it also returns the annotations that stay as they were. A
// client that applies manifests names its field manager, and means what it writes. kubectl rollout undo and the Deployment controller
// name none.
func (h Handlers) undone(
	ctx context.Context, req admission.Request, d *apps.Deployment, before *workload,
) (*deployments.Rollout, []patches.EntryChange, error) {
	rollout, err := h.Live.WithoutPods().RolloutOf(ctx, d)
	var options metav1.PatchOptions
	if err != nil || json.Unmarshal(req.Options.Raw, &options) == nil && options.FieldManager != "" {
		return rollout, nil, err
	}
	kept := rollout.Undone(before.Annotations)
	if len(kept) == 0 {
		return rollout, nil, nil
	}
	d.Annotations = patches.Changed(d.Annotations, kept)
	rollout, err = h.Live.WithoutPods().RolloutOf(ctx, d)
	return rollout, kept, err
}

// updating reports whether a pod stays because its ReplicaSet takes part in an update. A surge pod that Stayput removes does not stay. A
// deletion, unlike an update, does not come again after a denial. So the mark is read live before a denial, too: the removal of the mark
// makes the controller look again, and an answer from an older cache would come after that. A closed gate does not replace the live read:
// on an unreachable node it stays closed.
func (h Handlers) updating(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if deployments.MayBeDeleted(pod) {
		return false, nil
	}
	rs, err := h.marked(ctx, pod)
	return rs != nil, err
}

// marked returns the pod's ReplicaSet as the API server has it; nil if its mark does not hold.
func (h Handlers) marked(ctx context.Context, pod *corev1.Pod) (*apps.ReplicaSet, error) {
	rs, err := h.Live.ReplicaSetOf(ctx, pod)
	if rs == nil || err != nil {
		return nil, err
	}
	if holds, err := h.markHolds(ctx, rs); err != nil || !holds {
		return nil, err
	}
	return rs, nil
}

// full reports whether the ReplicaSet that a pod is created in takes part in an update and has all its pods already (deployments.Full). The
// cache may not know of the mark yet, nor of pods that have moved there. So the mark is read from the API server. Where the cache says
// that pods are missing, they are counted at the API server as well, as often as recounts allows.
func (h Handlers) full(ctx context.Context, pod *corev1.Pod) (bool, error) {
	rs, err := h.marked(ctx, pod)
	if rs == nil || err != nil {
		return false, err
	}
	live, err := h.Cached.LivePodsOf(ctx, rs)
	if err == nil && !deployments.Full(rs, live) && h.recounts.Allow() {
		live, err = h.Live.LivePodsOf(ctx, rs)
	}
	return err == nil && deployments.Full(rs, live), err
}

// markHolds reports whether the mark on a ReplicaSet, as the API server has it, holds deletions.
func (h Handlers) markHolds(ctx context.Context, rs *apps.ReplicaSet) (bool, error) {
	if !revisions.Updating(rs) {
		return false, nil
	}
	// A ReplicaSet that a user made from the manifest of another one has the mark, and Stayput never removes it.
	deployment, err := h.Live.DeploymentOf(ctx, rs)
	if deployment == nil || err != nil || !h.lasts(deployment, deployment.Spec.Template, rs) {
		return false, err
	}
	// When the update fell back, Stayput may not have been able to remove the mark.
	fallback, err := h.Hold.PersistedFallback(ctx, deployment.UID)
	return fallback == (revisions.Fallback{}), err
}

// holds reports whether native writes are held because the Deployment's pods are moved.
func (h Handlers) holds(rollout *deployments.Rollout) bool {
	decided := rollout.Decision()
	return decided.Held && h.lasts(rollout.Deployment, rollout.Deployment.Spec.Template, decided.UpdateRevision)
}
