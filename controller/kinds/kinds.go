package kinds

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// All has the kinds of workloads. From it follows which workloads are updated, which events enqueue which workload,
// which updates fall back when Stayput is uninstalled, and what metrics count.
var All = []Kind{Deployments, DaemonSets, StatefulSets}

// Kind is what differs between kinds of workloads besides their rollouts.
type Kind struct {
	observe.Kind
	// Controller is the name of the controller that updates them, in controller-runtime's metrics and logs.
	Controller string
	// Source returns a Source that reads them through a reader.
	Source func(observe.Reader) Source
	// Owned returns the object that links a pod to its workload: its revision, or the pod itself. It returns nil if the
	// object is not there (yet).
	Owned func(ctx context.Context, reader observe.Reader, pod *corev1.Pod) (client.Object, error)
	// Nodes passes the events of nodes that concern them. If OnEveryNode, that includes workloads without a pod there.
	Nodes predicate.Predicate
	// Finished reports whether the native controller is done with a workload.
	Finished func(workload client.Object) bool
}

// Source returns one workload with everything that belongs to it; nil if it is gone.
type Source func(ctx context.Context, key types.NamespacedName) (Rollout, error)

// reading returns a Source of one kind.
func reading[T any](read func(context.Context, types.NamespacedName) (*T, error), as func(*T) Rollout) Source {
	return func(ctx context.Context, key types.NamespacedName) (Rollout, error) {
		found, err := read(ctx, key)
		if found == nil || err != nil {
			return nil, err
		}
		return as(found), nil
	}
}

// Rollout is a workload of any kind with everything that an update of it depends on: see deployment.go and
// revised.go.
type Rollout interface {
	Decision() steps.Decision
	Plan() steps.Plan
	FallBack(why inplace.Reason) steps.Plan
	Nudge() []steps.Step
	// Workload is the object itself.
	Workload() client.Object
	// Revisions are its ReplicaSets or ControllerRevisions.
	Revisions() []client.Object
	// Snapshot is what was observed besides. The caller adds what it remembers before it calls Plan.
	Snapshot() *engine.Snapshot
	// Done reports whether every pod has the update revision and is available, according to the native controller.
	Done() bool
	// Overdue reports whether the native controller says that the progress deadline is exceeded.
	Overdue() bool
	// Stalled returns why the update makes no progress by itself; empty if it may.
	Stalled() string
	// Stage returns how far the partition lets the update go, and whether it is there.
	Stage() steps.Stage
	// TemplateHash returns a hash that identifies the template.
	TemplateHash() string
	// Fresh reports whether no pod has the update revision yet.
	Fresh() bool
	// PodProgress returns the progress of each live pod.
	PodProgress() []podstate.PodProgress
	// Images counts the nodes that have the new images, where a partition keeps all pods.
	Images() steps.Images
}

// Objects returns all objects of the rollout to which Stayput writes.
func Objects(r Rollout) []metav1.Object {
	objects := []metav1.Object{r.Workload()}
	for _, revision := range r.Revisions() {
		objects = append(objects, revision)
	}
	for _, pod := range slices.Concat(r.Snapshot().Pods, r.Snapshot().Pull.PrePullPods) {
		objects = append(objects, pod)
	}
	return objects
}

// Marked reports whether a revision is part of an update in progress.
func Marked(r Rollout) bool { return slices.ContainsFunc(r.Revisions(), revisions.Updating) }

// objectsOf returns the objects of a list.
func objectsOf[P client.Object](list []P) []client.Object {
	var objects []client.Object
	for _, object := range list {
		objects = append(objects, object)
	}
	return objects
}
