package webhook

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// holds reports whether native writes are held because the Deployment's pods are moved.
func (h Handlers) holds(rollout *deployments.Rollout) bool {
	by := revisions.HeldBy(rollout.UpdateRevision(), rollout.ReplicaSets, rollout.Seen.Now)
	return rollout.Decision().Held && h.lasts(rollout.Deployment, rollout.Deployment.Spec.Template, steps.RevisionOf(by))
}

// refuseUpdating refuses the deletion of a pod whose ReplicaSet takes part in an update with NotFound: the ReplicaSet controller takes the
// pod as gone, without event or back-off (manageReplicas in pkg/controller/replicaset/replica_set.go). A surge pod that Stayput removes
// does not stay. A deletion does not come again after NotFound. So the mark is read live before a denial, too: the removal of the mark
// makes the controller look again, and an answer from an older cache would come after that. That the pod is out of service does not replace
// the live read: on an unreachable node it stays so. Where the API server cannot be read in time, the cache decides, and the controller is
// to try again.
func (h Handlers) refuseUpdating(ctx context.Context, pod *corev1.Pod) (refusal, error) {
	if deployments.MayBeDeleted(pod) {
		return nil, nil
	}
	stays, err := h.marked(ctx, h.Live, pod)
	if err != nil && h.cacheSays(ctx, err, func(ctx context.Context) (bool, error) { return h.marked(ctx, h.Cached, pod) }) {
		return conflict, nil
	}
	return refusal(notFound).ifHeld(stays, err)
}

// marked reports whether the mark on the pod's ReplicaSet holds deletions, as the reader has it. All that counts is metadata, and most pods
// are created where nothing is marked. So nothing else is read: the controller waits for the answer.
func (h Handlers) marked(ctx context.Context, reader observe.Reader, pod *corev1.Pod) (bool, error) {
	rs, err := observe.Deployments.Revision.MetadataOfController(ctx, reader, pod)
	if rs == nil || err != nil {
		return false, err
	}
	return h.markHolds(ctx, reader, rs)
}

// markHolds reports whether the mark on a ReplicaSet holds deletions. A mark without a time is not the leader's.
func (h Handlers) markHolds(ctx context.Context, reader observe.Reader, rs client.Object) (bool, error) {
	if !revisions.Updating(rs) || !revisions.Started(rs.GetLabels()) {
		return false, nil
	}
	// A ReplicaSet that a user made from the manifest of another one has the mark, and Stayput never removes it.
	deployment, err := observe.Deployments.Workload.MetadataOfController(ctx, reader, rs)
	if deployment == nil || err != nil || !h.lasts(deployment, apps.Template{}, rs) {
		return false, err
	}
	// When the update fell back, Stayput may not have been able to remove the mark.
	fallback, err := h.Hold.PersistedFallback(ctx, deployment.GetUID())
	return fallback == (revisions.Fallback{}), err
}

// moving returns the rollout of the ReplicaSet's Deployment if Stayput moves its pods, or did so until the Deployment was deleted. It
// returns nil otherwise.
func (h Handlers) moving(ctx context.Context, reader observe.Reader, key types.NamespacedName) (*deployments.Rollout, error) {
	rollout, err := rolloutWith(ctx, reader, key)
	if rollout == nil || err != nil || !h.holds(rollout) && !rollout.Deleting() {
		return nil, err
	}
	return rollout, nil
}

// rolloutWith reads the rollout that the ReplicaSet is part of; nil if there is none.
func rolloutWith(ctx context.Context, reader observe.Reader, key types.NamespacedName) (*deployments.Rollout, error) {
	rs, err := observe.Find[apps.ReplicaSet](ctx, reader, key)
	if rs == nil || err != nil {
		return nil, err
	}
	return reader.RolloutOfReplicaSet(ctx, rs)
}

// sameUpdate returns a function that reports whether Stayput still moves the pods of the ReplicaSet's Deployment, as the cache has it, and
// the Deployment has not been edited since the first call.
func (h Handlers) sameUpdate(key types.NamespacedName) func(context.Context) bool {
	generation := int64(-1)
	return func(ctx context.Context) bool {
		rollout, err := rolloutWith(ctx, h.Cached.WithoutPods(), key)
		if rollout == nil || err != nil {
			return false
		}
		if generation < 0 {
			generation = rollout.Deployment.Generation
		}
		return rollout.Deployment.Generation == generation && h.holds(rollout)
	}
}

// surplusPasses returns a function that reports whether the leader is about to bring replicas and pods of the pod's ReplicaSet in line.
// The function is called again and again, and there may be thousands of pods: it only counts them.
func (s Sources) surplusPasses(pod *corev1.Pod) func(context.Context) bool {
	return func(ctx context.Context) bool {
		rs, err := s.Cached.ReplicaSetOf(ctx, pod)
		if rs == nil || err != nil {
			return false
		}
		live, err := s.Cached.LivePodsOf(ctx, rs)
		return err == nil && deployments.SurplusPasses(rs, live)
	}
}
