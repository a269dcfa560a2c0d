package kinds

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/serving"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/observe"
)

// All are the kinds of workloads: who is updated, whose events wake whom, what is released in the end, and what metrics count.
var All = []Kind{Deployments, DaemonSets}

// Kind is what differs between kinds of workloads besides their rollouts.
type Kind struct {
	observe.Kind
	// Controller is the name, in controller-runtime's metrics and logs, of what updates them.
	Controller string
	// Source reads them through a reader.
	Source func(observe.Reader) Source
	// Owned is by way of what a pod belongs to its workload: its revision, or the pod itself. nil if that is not there (yet).
	Owned func(ctx context.Context, reader observe.Reader, pod *corev1.Pod) (client.Object, error)
	// Nodes passes the events of nodes that concern them. OnEveryNode: also those of nodes without a pod of theirs.
	Nodes       predicate.Predicate
	OnEveryNode bool
	// Finished reports whether the native controller is done with a workload.
	Finished func(workload client.Object) bool
}

// Source reads one workload with everything that belongs to it, nil if it is gone.
type Source func(ctx context.Context, key types.NamespacedName) (Rollout, error)

// reading is a Source of one kind.
func reading[T any](read func(context.Context, types.NamespacedName) (*T, error), as func(*T) Rollout) Source {
	return func(ctx context.Context, key types.NamespacedName) (Rollout, error) {
		found, err := read(ctx, key)
		if found == nil || err != nil {
			return nil, err
		}
		return as(found), nil
	}
}

// Rollout is a workload of whatever kind with everything an update of it depends on: see deployment.go and daemonset.go.
type Rollout interface {
	Decision() steps.Decision
	Plan() steps.Plan
	FallBack(why inplace.Reason) steps.Plan
	Nudge() []steps.Step
	Snapshot() Snapshot
	// Needs is what Plan needs to know besides what was read, to be set before.
	Needs() Needs
	// Done reports whether every pod is where it belongs and available, by the native controller's own account.
	Done() bool
	// Overdue reports whether the native controller says that there has been no progress for too long.
	Overdue() bool
	// Fresh reports whether no pod has come to the target yet.
	Fresh() bool
	// PodProgress are how far each live pod is.
	PodProgress() []podstate.PodProgress
}

// Needs are the places of what a plan needs to know.
type Needs struct {
	// Endpoints are of pods whose gates are closed.
	Endpoints *serving.Endpoints
	// Ahead are pods whose kubelets do not know yet that they are Ready.
	Ahead *readiness.Ahead
	// Batches are since when something has been put off.
	Batches *steps.Batches
	// Pull is what is known of images on nodes.
	Pull *prepull.Pulling
	// DryRun is what is known of new pods.
	DryRun *dryrun.Result
	// OldDryRun is the same of a revision to which pods go back.
	OldDryRun *dryrun.Result
}

// Snapshot is what there is to see of a rollout whatever its kind.
type Snapshot struct {
	Workload    client.Object
	Revisions   []client.Object
	Pods        []*corev1.Pod
	PrePullPods []*corev1.Pod
	Mode        inplace.Mode
	Settings    inplace.Settings
	Now         time.Time
}

// Objects returns everything the rollout was read from that anybody here writes to.
func (s Snapshot) Objects() []client.Object {
	objects := append([]client.Object{s.Workload}, s.Revisions...)
	for _, pod := range slices.Concat(s.Pods, s.PrePullPods) {
		objects = append(objects, pod)
	}
	return objects
}

// Marked reports whether some revision is part of an update under way.
func (s Snapshot) Marked() bool { return slices.ContainsFunc(s.Revisions, revisions.Updating) }

// objectsOf are the objects of a list.
func objectsOf[P client.Object](list []P) []client.Object {
	var objects []client.Object
	for _, object := range list {
		objects = append(objects, object)
	}
	return objects
}
