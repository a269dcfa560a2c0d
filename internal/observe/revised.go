package observe

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/controllerrevisions"
)

// selectorOf returns the selector of the workload's pods.
func selectorOf(workload client.Object) *metav1.LabelSelector {
	return workload.(apps.Workload).PodSelector()
}

// Rollout returns the workload with its revisions and pods, the nodes on which its update depends, and its pre-pull pods. It
// returns nil if there is no such workload.
func (k Kind) Rollout(ctx context.Context, r Reader, key types.NamespacedName) (*controllerrevisions.Rollout, error) {
	workload, err := r.find(ctx, key, k.Workload.Object())
	if workload == nil || err != nil {
		return nil, err
	}
	rollout, err := k.RolloutOf(ctx, r, workload)
	if err != nil {
		return nil, err
	}
	if k.OnEveryNode && !r.nodeless {
		if rollout.Seen.Nodes, err = r.nodes(ctx); err != nil {
			return nil, err
		}
	}
	rollout.Seen.Pull, err = r.prePullPodsOf(ctx, workload, uids(rollout.Revisions)...)
	return rollout, err
}

// RolloutOfControlled returns the rollout of the workload that controls the pod or revision, as RolloutOf does. It returns nil
// if there is none with the UID in the owner reference.
func (k Kind) RolloutOfControlled(ctx context.Context, r Reader, of client.Object) (*controllerrevisions.Rollout, error) {
	workload, err := k.Workload.controllerOf(ctx, r, of)
	if workload == nil || err != nil {
		return nil, err
	}
	return k.RolloutOf(ctx, r, workload)
}

// RolloutOfEdited returns the rollout of the stored workload as the edit leaves it, with what the stored one selects and
// controls, whatever the edit says. It returns nil if no such workload is stored.
func (k Kind) RolloutOfEdited(
	ctx context.Context, r Reader, edited client.Object, key types.NamespacedName,
) (*controllerrevisions.Rollout, error) {
	stored, err := r.find(ctx, key, k.Workload.Object())
	if stored == nil || err != nil {
		return nil, err
	}
	edited.SetNamespace(stored.GetNamespace())
	edited.SetUID(stored.GetUID())
	return k.rolloutOf(ctx, r, selected{edited, selectorOf(stored)})
}

// RolloutOf returns the rollout of the given workload, without pre-pull pods, and without nodes if it depends on all of them.
// The workload need not be stored yet.
func (k Kind) RolloutOf(ctx context.Context, r Reader, workload client.Object) (*controllerrevisions.Rollout, error) {
	return k.rolloutOf(ctx, r, selected{workload, selectorOf(workload)})
}

func (k Kind) rolloutOf(ctx context.Context, r Reader, of selected) (*controllerrevisions.Rollout, error) {
	seen, err := k.snapshotOf(ctx, r, of.Object)
	if err != nil {
		return nil, err
	}
	rollout := &controllerrevisions.Rollout{Kind: k.Of(of.Object), Seen: seen}
	revisions, load, err := owned[apps.ControllerRevision](
		ctx, r, &apps.ControllerRevisionList{}, of, []types.UID{of.GetUID()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	rollout.Revisions, rollout.Seen.Unread = revisions, load.unread()
	if !r.podless {
		if err := k.addPods(ctx, r, rollout, of); err != nil {
			return nil, err
		}
	}
	rollout.Seen.Now = time.Now()
	return rollout, nil
}

// addPods reads the pods of the rollout, and their nodes unless it depends on all nodes.
func (k Kind) addPods(ctx context.Context, r Reader, rollout *controllerrevisions.Rollout, of selected) error {
	err := addPods(ctx, r, rollout, of)
	if err != nil || k.OnEveryNode || r.nodeless {
		return err
	}
	rollout.Seen.Nodes, err = r.NodesOf(ctx, rollout.Seen.Pods)
	return err
}

// addPods reads the pods of the rollout.
func addPods(ctx context.Context, r Reader, rollout *controllerrevisions.Rollout, of selected) error {
	pods, load, err := r.podsOf(ctx, of, []types.UID{of.GetUID()})
	rollout.Seen.Pods, rollout.Seen.Unread = pods, cmp.Or(rollout.Seen.Unread, load.unread())
	return err
}

// Deletion returns the rollout that a decision on the deletion of a pod depends on. It returns nil if the pod's workload is
// gone. The workload and its revisions come from r. If r is a cache, everything comes from it.
func (k Kind) Deletion(ctx context.Context, r Reader, pod *corev1.Pod, cached Reader) (*controllerrevisions.Rollout, error) {
	workload, err := k.Workload.controllerOf(ctx, r, pod)
	if workload == nil || err != nil {
		return nil, err
	}
	rollout, err := k.RolloutOf(ctx, r.WithoutPods(), workload)
	if err != nil || !rollout.Seen.Mode.Manages() {
		return rollout, err
	}
	d := deletion{Rollout: rollout, of: selected{workload, selectorOf(workload)}, pod: pod, cached: cached}
	if k.OnEveryNode {
		return rollout, d.readNode(ctx, r)
	}
	return rollout, d.readAll(ctx, r)
}

// deletion is the deletion of a pod, with the rollout of its workload.
type deletion struct {
	*controllerrevisions.Rollout
	of     selected
	pod    *corev1.Pod
	cached Reader
}

// readAll reads all pods of the workload from r, and their nodes from the cache.
func (d deletion) readAll(ctx context.Context, r Reader) error {
	err := addPods(ctx, r, d.Rollout, d.of)
	if err != nil {
		return err
	}
	d.Seen.Nodes, err = d.cached.NodesOf(ctx, d.Seen.Pods)
	return err
}

// readNode reads the pod's node and the pods there from r, and the other pods and nodes from the cache: there may be thousands
// of them, and as many deletions to decide on.
func (d deletion) readNode(ctx context.Context, r Reader) error {
	err := addPods(ctx, d.cached, d.Rollout, d.of)
	if err != nil {
		return err
	}
	if d.Seen.Nodes, err = d.cached.nodes(ctx); err != nil || r.Stores.present() {
		return err
	}
	return d.refresh(ctx, r, d.pod.Spec.NodeName)
}

// refresh replaces the node, and the pods on it, in the rollout with what r reads now.
func (d deletion) refresh(ctx context.Context, r Reader, name string) error {
	pods, load, err := r.podsOf(ctx, d.of, []types.UID{d.of.GetUID()}, client.MatchingFields{fieldNode: name})
	if err != nil {
		return err
	}
	node, err := Find[corev1.Node](ctx, r, types.NamespacedName{Name: name})
	if err != nil {
		return err
	}
	nodes := slices.DeleteFunc(slices.Clone(d.Seen.Nodes), func(other *corev1.Node) bool { return other.Name == name })
	if node != nil {
		nodes = append(nodes, node)
	}
	elsewhere := slices.DeleteFunc(slices.Clone(d.Seen.Pods), func(pod *corev1.Pod) bool { return pod.Spec.NodeName == name })
	pods = append(pods, elsewhere...)
	d.Seen.Pods, d.Seen.Nodes, d.Seen.Unread = pods, nodes, cmp.Or(d.Seen.Unread, load.unread())
	return nil
}
