package engine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// Traits are what is the same for all workloads of a kind. The zero value of each is the usual one.
type Traits struct {
	// ShortName is kubectl's short name of the kind.
	ShortName string
	// PodsBy is the user that creates and deletes the pods: a native controller. Such users exist only under kube-controller-manager
	// --use-service-account-credentials. Without that flag Stayput holds no write, and every update is native.
	PodsBy string
	// FewWorkers: by default that controller has two workers (concurrent-daemonset-syncs). Others have five (concurrent-replicaset-syncs,
	// concurrent-statefulset-syncs).
	FewWorkers bool
	// GoneIfNotFound: it deletes pods because too few of them are out of service, takes a pod as gone after NotFound, without event or
	// back-off, and looks again when the pod's kubelet puts it back.
	GoneIfNotFound bool
	// WatchesRevisions: an event of a ControllerRevision makes it look at its workload. Otherwise an event of a pod does.
	WatchesRevisions bool
	// OwnPartition is the JSON pointer of the spec's own partition. Without one the annotation stayput.dev/partition is the partition.
	OwnPartition string
	// InOrder: a pod that waits for a PodDisruptionBudget or a limit has those after it wait, too, if they serve.
	InOrder bool
	// OnEveryNode: an update depends on all nodes, and not only on those of the workload's pods.
	OnEveryNode bool
	// Scaled: the workload has the subresource scale, so an autoscaler may scale it.
	Scaled bool
}

// Rollout is a workload of any kind with everything that an update of it depends on.
type Rollout interface {
	// Workload is the object itself.
	Workload() Object
	// Holders are its ReplicaSets or ControllerRevisions.
	Holders() []Object
	// Snapshot is what was observed besides. The caller adds what it remembers before it calls Plan.
	Snapshot() *Snapshot
	Decision() steps.Decision
	Plan() steps.Plan
	FallBack(why inplace.Reason) steps.Plan
	Nudge() []steps.Step
	// Preview returns what happens to the pods if the workload, which is not stored yet, replaces the one with the template before.
	Preview(before apps.Template) steps.Preview
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

// Marked reports whether a revision is part of an update in progress.
func Marked(r Rollout) bool { return slices.ContainsFunc(r.Holders(), revisions.Updating) }

// Untouched reports whether the mode does not manage the workload, no pod waits for an answer, and nothing of Stayput is left. Then Stayput
// looks at none of its templates: any user may have written them, as many and as large as the API server accepts.
func Untouched(r Rollout) bool {
	s := r.Snapshot()
	if s.Mode.Manages() || len(s.Pull.PrePullPods) > 0 || s.Fallback.Hash != "" {
		return false
	}
	touched := func(pod *corev1.Pod) bool { return readiness.HasMarks(pod) || podstate.MayAnswer(pod, s.Mode) }
	return !slices.ContainsFunc(s.Pods, touched) && !slices.ContainsFunc(r.Holders(), revisions.Marked)
}

// Objects returns all objects of the rollout to which Stayput writes.
func Objects(r Rollout) []metav1.Object {
	objects := []metav1.Object{r.Workload()}
	for _, holder := range r.Holders() {
		objects = append(objects, holder)
	}
	for _, pod := range slices.Concat(r.Snapshot().Pods, r.Snapshot().Pull.PrePullPods) {
		objects = append(objects, pod)
	}
	return objects
}

// ObjectsOf returns the objects of a list.
func ObjectsOf[P Object](list []P) []Object {
	var objects []Object
	for _, object := range list {
		objects = append(objects, object)
	}
	return objects
}
