package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/daemonsets"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/nodes"
)

// fieldNode is the only field besides name and namespace that Stayput uses to select pods at the API server.
const fieldNode = "spec.nodeName"

// DaemonSets is the kind whose revisions are ControllerRevisions.
var DaemonSets = Kind{
	Workload: typeOf("DaemonSet", func() client.ObjectList { return &apps.DaemonSetList{} },
		func(d *apps.DaemonSet) int {
			return d.ObjectMeta.Size() + d.Spec.Size() + d.Spec.Template.Size() + d.Status.Size()
		},
		func(_ *apps.DaemonSet, form metav1.ObjectMeta) *apps.DaemonSet {
			return &apps.DaemonSet{ObjectMeta: form}
		}),
	Revision: controllerRevisions,
	nudgers:  nudgersOfDaemonSets,
}

// DaemonRollout returns the DaemonSet with its revisions and pods, all nodes, and its pre-pull pods. It returns nil if
// there is no such DaemonSet.
func (r Reader) DaemonRollout(ctx context.Context, key types.NamespacedName) (*daemonsets.Rollout, error) {
	daemonSet, err := r.DaemonSet(ctx, key)
	if daemonSet == nil || err != nil {
		return nil, err
	}
	rollout, err := r.DaemonRolloutOf(ctx, daemonSet)
	if err != nil {
		return nil, err
	}
	if !r.nodeless {
		if rollout.Seen.Nodes, err = r.nodes(ctx); err != nil {
			return nil, err
		}
	}
	rollout.Seen.Pull, err = r.prePullPodsOf(ctx, daemonSet, uids(rollout.Revisions)...)
	return rollout, err
}

// DaemonSet returns one DaemonSet; nil if there is none.
func (r Reader) DaemonSet(ctx context.Context, key types.NamespacedName) (*apps.DaemonSet, error) {
	return find[apps.DaemonSet](ctx, r, key)
}

// DaemonSetOf returns the DaemonSet that controls the pod or revision. It returns nil if there is none with the UID in
// the owner reference.
func (r Reader) DaemonSetOf(ctx context.Context, of client.Object) (*apps.DaemonSet, error) {
	return findController[apps.DaemonSet](ctx, r, of, "DaemonSet")
}

// DaemonRolloutOf returns the rollout of the given DaemonSet, without nodes. The DaemonSet need not be stored yet.
func (r Reader) DaemonRolloutOf(ctx context.Context, daemonSet *apps.DaemonSet) (*daemonsets.Rollout, error) {
	policy, err := r.ordersFor(ctx, DaemonSets, daemonSet)
	if err != nil {
		return nil, err
	}
	rollout := &daemonsets.Rollout{
		DaemonSet: daemonSet,
		Seen: engine.Snapshot{Mode: policy.mode, Settings: policy.settings,
			Fallback: policy.fallback, Rules: policy.rules},
	}
	of := selected{daemonSet, daemonSet.Spec.Selector}
	revisions, load, err := owned[apps.ControllerRevision](
		ctx, r, &apps.ControllerRevisionList{}, of, []types.UID{daemonSet.UID}, r.shared()...)
	if err != nil {
		return nil, err
	}
	rollout.Revisions, rollout.Seen.Unread = revisions, load.unread()
	if !r.podless {
		if err = r.daemons(ctx, rollout); err != nil {
			return nil, err
		}
	}
	rollout.Seen.Now = time.Now()
	return rollout, nil
}

// Deletion returns the rollout that a decision on the deletion of a DaemonSet's pod depends on. It returns nil if the
// DaemonSet is gone. The DaemonSet, its revisions, the pod's node and the pods on that node come from r. The other pods
// and nodes come from the cache. If r is a cache, everything comes from it.
func (r Reader) Deletion(ctx context.Context, pod *corev1.Pod, cached Reader) (*daemonsets.Rollout, error) {
	daemonSet, err := r.DaemonSetOf(ctx, pod)
	if daemonSet == nil || err != nil {
		return nil, err
	}
	rollout, err := r.WithoutPods().DaemonRolloutOf(ctx, daemonSet)
	if err != nil || !rollout.Seen.Mode.Manages() {
		return rollout, err
	}
	if err = cached.daemons(ctx, rollout); err != nil {
		return nil, err
	}
	if rollout.Seen.Nodes, err = cached.nodes(ctx); err != nil || r.indexed() {
		return rollout, err
	}
	return rollout, r.refresh(ctx, rollout, pod.Spec.NodeName)
}

// refresh replaces the node, and the pods on it, in the rollout with what r reads now.
func (r Reader) refresh(ctx context.Context, rollout *daemonsets.Rollout, name string) error {
	of := selected{rollout.DaemonSet, rollout.DaemonSet.Spec.Selector}
	pods, load, err := r.podsOf(ctx, of, []types.UID{rollout.DaemonSet.UID}, client.MatchingFields{fieldNode: name})
	if err != nil {
		return err
	}
	node, err := find[corev1.Node](ctx, r, types.NamespacedName{Name: name})
	if err != nil {
		return err
	}
	nodes := slices.DeleteFunc(slices.Clone(rollout.Seen.Nodes), func(other *corev1.Node) bool { return other.Name == name })
	if node != nil {
		nodes = append(nodes, node)
	}
	elsewhere := slices.DeleteFunc(slices.Clone(rollout.Seen.Pods), func(pod *corev1.Pod) bool { return pod.Spec.NodeName == name })
	pods = append(pods, elsewhere...)
	rollout.Seen.Pods, rollout.Seen.Nodes, rollout.Seen.Unread = pods, nodes, cmp.Or(rollout.Seen.Unread, load.unread())
	return nil
}

// daemons reads the pods of the rollout.
func (r Reader) daemons(ctx context.Context, rollout *daemonsets.Rollout) error {
	of := selected{rollout.DaemonSet, rollout.DaemonSet.Spec.Selector}
	pods, load, err := r.podsOf(ctx, of, []types.UID{rollout.DaemonSet.UID})
	rollout.Seen.Pods, rollout.Seen.Unread = pods, cmp.Or(rollout.Seen.Unread, load.unread())
	return err
}

// nodes returns all nodes. The result is never nil: a cluster without nodes has an empty list.
func (r Reader) nodes(ctx context.Context) ([]*corev1.Node, error) {
	if r.indexed() {
		return r.Stores.nodes.all()
	}
	var list corev1.NodeList
	if err := r.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	nodes := make([]*corev1.Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, &list.Items[i])
	}
	return nodes, nil
}

// IsUnreachable reports whether the pod's node is unreachable: its kubelet does not report. It reads the node only if
// the pod's containers are ready. As long as they are not ready, only the kubelet can make the pod Ready, and the node
// does not matter. A node that is gone or cannot be read counts as unreachable. If that is wrong, it costs a second or
// two: see podstate.OpenGate.
func (r Reader) IsUnreachable(ctx context.Context, pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" || !apps.IsTrue(pod, corev1.ContainersReady) {
		return false
	}
	node, err := find[corev1.Node](ctx, r, types.NamespacedName{Name: pod.Spec.NodeName})
	return err != nil || node == nil || nodes.Unreachable(node)
}

// shared returns the option with which a cache returns its own objects instead of copies. That is safe because package
// inplace changes no object, and it matters because a workload may have thousands of pods.
func (r Reader) shared() []client.ListOption {
	if !r.indexed() {
		return nil
	}
	return []client.ListOption{client.UnsafeDisableDeepCopy}
}

// nudgersOfDaemonSets returns the rollouts of the DaemonSets of a namespace.
func nudgersOfDaemonSets(ctx context.Context, r Reader, of namespaced) ([]Nudger, error) {
	var list apps.DaemonSetList
	if err := of.list(ctx, r, &list); err != nil {
		return nil, err
	}
	var all []Nudger
	for i := range list.Items {
		daemonSet := &list.Items[i]
		all = append(all, &daemonsets.Rollout{
			DaemonSet: daemonSet,
			Revisions: of.revisions[daemonSet.UID],
			Seen:      engine.Snapshot{Pods: of.pods[daemonSet.UID], Mode: of.modeOf(daemonSet), Now: of.now},
		})
	}
	return all, nil
}
