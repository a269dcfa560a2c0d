package observe

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/statefulsets"
)

// StatefulSets is the kind whose revisions are ControllerRevisions, and which is updated in place on request only.
var StatefulSets = Kind{
	Workload: typeOf("StatefulSet", func() client.ObjectList { return &apps.StatefulSetList{} },
		func(s *apps.StatefulSet) int {
			return s.ObjectMeta.Size() + s.Spec.Size() + s.Spec.Template.Size() + s.Status.Size()
		},
		func(_ *apps.StatefulSet, form metav1.ObjectMeta) *apps.StatefulSet {
			return &apps.StatefulSet{ObjectMeta: form}
		}),
	Revision: controllerRevisions,
	optedIn:  func(settings inplace.Settings) bool { return settings.StatefulSets },
	nudgers:  nudgersOfStatefulSets,
}

// StatefulRollout returns the StatefulSet with its revisions and pods, the nodes of these pods, and its pre-pull pods.
// It returns nil if there is no such StatefulSet.
func (r Reader) StatefulRollout(ctx context.Context, key types.NamespacedName) (*statefulsets.Rollout, error) {
	statefulSet, err := r.StatefulSet(ctx, key)
	if statefulSet == nil || err != nil {
		return nil, err
	}
	rollout, err := r.StatefulRolloutOf(ctx, statefulSet)
	if err != nil {
		return nil, err
	}
	rollout.Seen.Pull, err = r.prePullPodsOf(ctx, statefulSet, uids(rollout.Revisions)...)
	return rollout, err
}

// StatefulSet returns one StatefulSet; nil if there is none.
func (r Reader) StatefulSet(ctx context.Context, key types.NamespacedName) (*apps.StatefulSet, error) {
	return find[apps.StatefulSet](ctx, r, key)
}

// StatefulRolloutOfControlled returns the rollout of the StatefulSet that controls the pod or revision. It returns nil if
// there is none with the UID in the owner reference.
func (r Reader) StatefulRolloutOfControlled(ctx context.Context, of client.Object) (*statefulsets.Rollout, error) {
	statefulSet, err := findController[apps.StatefulSet](ctx, r, of, "StatefulSet")
	if statefulSet == nil || err != nil {
		return nil, err
	}
	return r.StatefulRolloutOf(ctx, statefulSet)
}

// StatefulRolloutOf returns the rollout of the given StatefulSet, without pre-pull pods. The StatefulSet need not be
// stored yet.
func (r Reader) StatefulRolloutOf(ctx context.Context, statefulSet *apps.StatefulSet) (*statefulsets.Rollout, error) {
	policy, err := r.ordersFor(ctx, StatefulSets, statefulSet)
	if err != nil {
		return nil, err
	}
	rollout := &statefulsets.Rollout{
		StatefulSet: statefulSet,
		Seen: engine.Snapshot{Mode: policy.mode, Settings: policy.settings,
			Fallback: policy.fallback, Rules: policy.rules},
	}
	of := selected{statefulSet, statefulSet.Spec.Selector}
	revisions, load, err := owned[apps.ControllerRevision](
		ctx, r, &apps.ControllerRevisionList{}, of, []types.UID{statefulSet.UID}, r.shared()...)
	if err != nil {
		return nil, err
	}
	rollout.Revisions, rollout.Seen.Unread = revisions, load.unread()
	if err := r.members(ctx, rollout); err != nil {
		return nil, err
	}
	rollout.Seen.Now = time.Now()
	return rollout, nil
}

// MemberDeletion returns the rollout that a decision on the deletion of a StatefulSet's pod depends on. It returns nil if
// the StatefulSet is gone. The StatefulSet, its revisions and its pods come from r, their nodes from the cache.
func (r Reader) MemberDeletion(ctx context.Context, pod *corev1.Pod, cached Reader) (*statefulsets.Rollout, error) {
	rollout, err := r.WithoutPods().StatefulRolloutOfControlled(ctx, pod)
	if rollout == nil || err != nil || !rollout.Seen.Mode.Manages() {
		return rollout, err
	}
	if err = r.WithoutNodes().members(ctx, rollout); err != nil {
		return nil, err
	}
	rollout.Seen.Nodes, err = cached.nodesOf(ctx, rollout.Seen.Pods)
	return rollout, err
}

// members reads the pods of the rollout, and their nodes.
func (r Reader) members(ctx context.Context, rollout *statefulsets.Rollout) error {
	if r.podless {
		return nil
	}
	pods, load, err := r.podsOf(ctx, selected{rollout.StatefulSet, rollout.StatefulSet.Spec.Selector}, []types.UID{rollout.StatefulSet.UID})
	rollout.Seen.Pods, rollout.Seen.Unread = pods, cmp.Or(rollout.Seen.Unread, load.unread())
	if err != nil || r.nodeless {
		return err
	}
	rollout.Seen.Nodes, err = r.nodesOf(ctx, pods)
	return err
}

// nudgersOfStatefulSets returns the rollouts of the StatefulSets of a namespace.
func nudgersOfStatefulSets(ctx context.Context, r Reader, of namespaced) ([]Nudger, error) {
	var list apps.StatefulSetList
	if err := of.list(ctx, r, &list); err != nil {
		return nil, err
	}
	var all []Nudger
	for i := range list.Items {
		statefulSet := &list.Items[i]
		all = append(all, &statefulsets.Rollout{
			StatefulSet: statefulSet,
			Revisions:   of.revisions[statefulSet.UID],
			Seen:        engine.Snapshot{Pods: of.pods[statefulSet.UID], Mode: of.modeOf(statefulSet), Now: of.now},
		})
	}
	return all, nil
}
