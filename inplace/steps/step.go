package steps

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/revisions"
)

// Step is one write. Its operations are a JSON patch that names only what it changes. The patch begins with tests of what the step was
// decided on, so that the API server refuses a step that was decided on stale data: patches.Guarded, and patches.GuardedButStatus for
// ReplicaSets, since the ReplicaSet controller updates the status after each pod that moves.
type Step interface {
	// Describe says what the step does, in one clause.
	Describe() string
}

// CreateReplicaSet creates the new ReplicaSet where the native controller would do so only after scaling down.
type CreateReplicaSet struct {
	Namespace, Name string
	// Object is the whole ReplicaSet.
	Object json.RawMessage
}

// PatchReplicaSet changes replicas, their annotations and Stayput's marks.
type PatchReplicaSet struct {
	ReplicaSet *apps.ReplicaSet
	Operations []jsonpatch.Operation
	Why        string
}

// PatchRevision changes Stayput's marks on a ControllerRevision.
type PatchRevision struct {
	Revision   *apps.ControllerRevision
	Operations []jsonpatch.Operation
	Why        string
}

// PatchPod makes one write of a pod's move: what the pod needs, a new identity, or both.
type PatchPod struct {
	Pod        *corev1.Pod
	Operations []jsonpatch.Operation
	Why        string
	// Moves: the pod becomes one of the update revision.
	Moves bool
	// Drained: containers of a pod stop that is out of service. podstate.Endpoint.Drained must hold for what the API server returns just
	// before the write, too.
	Drained bool
	// TimedOut is about pre-restart hooks that have held the pod for too long, one clause; empty if there are none.
	TimedOut string
	// Stops: containers of the pod stop for the patch.
	Stops bool
	// Resizes: the patch changes only CPU and memory, in subresource resize.
	Resizes bool
	// Asked is the container that restarts because an annotation of the pod asks for it; empty if the patch is one of an update.
	Asked string
	// Refuses is why such a request is dropped, Waits why it waits, one clause each; empty if it does not.
	Refuses, Waits string
	// Answers: the pod only says what becomes of such a request.
	Answers bool
	// Instead returns the step to take if the API server refuses this one, and why; nil if there is none.
	Instead func(why string) PatchPod
	// ServesOn is how long those containers go on serving after the patch.
	ServesOn time.Duration
}

// SetReady takes a pod out of service, or puts it back, by the condition Ready in subresource status.
type SetReady struct {
	Pod *corev1.Pod
	// Out: the pod is taken out of service.
	Out        bool
	Operations []jsonpatch.Operation
	Why        string
}

// TakesOut reports whether the step takes a pod out of service.
func TakesOut(step Step) bool {
	ready, _ := step.(SetReady)
	return ready.Out
}

// Disrupted returns the pod that the step takes out of service: by its Ready, or because containers of a pod stop that has had no turn. It
// returns nil if the step takes none.
func Disrupted(step Step) *corev1.Pod {
	switch s := step.(type) {
	case SetReady:
		if s.Out {
			return s.Pod
		}
	case PatchPod:
		if s.Stops && !s.Drained {
			return s.Pod
		}
	}
	return nil
}

// CreatePrePullPod creates a pre-pull pod, for which the node pulls images before containers there stop.
type CreatePrePullPod struct {
	Pod *corev1.Pod
	// UpdateRevision is the UID of the revision that needs them.
	UpdateRevision types.UID
}

// DeletePrePullPod deletes a pre-pull pod, if it has not changed since it was read.
type DeletePrePullPod struct {
	Pod *corev1.Pod
	Why string
}

// PersistFallback persists that the update of a workload to the template with that hash fell back, where no policy for workloads applies
// and where the webhooks look: in a ConfigMap in Stayput's own namespace.
type PersistFallback struct {
	Workload metav1.Object
	Fallback revisions.Fallback
}

// ForgetFallback removes the persisted fallback: nothing is left to do for the native controller, or the template is another one.
type ForgetFallback struct{ Workload metav1.Object }

// PatchStatus writes the Deployment's status as the native controller would, in subresource status.
type PatchStatus struct {
	Deployment *apps.Deployment
	Status     appsv1.DeploymentStatus
	Operations []jsonpatch.Operation
}

// Describe implements Step.
func (s CreateReplicaSet) Describe() string { return "create ReplicaSet " + s.Name }

// Describe implements Step.
func (s PatchReplicaSet) Describe() string { return "ReplicaSet " + s.ReplicaSet.Name + ": " + s.Why }

// Describe implements Step.
func (s PatchRevision) Describe() string {
	return "ControllerRevision " + s.Revision.Name + ": " + s.Why
}

// Describe implements Step.
func (s PatchPod) Describe() string { return "Pod " + s.Pod.Name + ": " + s.Why }

// Describe implements Step.
func (s SetReady) Describe() string {
	if s.Out {
		return "Pod " + s.Pod.Name + ": take it out of service, " + s.Why
	}
	return "Pod " + s.Pod.Name + ": put it back into service, " + s.Why
}

// Describe implements Step.
func (s CreatePrePullPod) Describe() string {
	return fmt.Sprintf("Node %s: pull %s", s.Pod.Spec.NodeName, strings.Join(References(s.Pod), ", "))
}

// References returns the images that the pre-pull pod is to pull.
func References(prePullPod *corev1.Pod) []string {
	var references []string
	for _, volume := range prePullPod.Spec.Volumes {
		if volume.Image != nil {
			references = append(references, volume.Image.Reference)
		}
	}
	return references
}

// Describe implements Step.
func (s DeletePrePullPod) Describe() string { return "Pod " + s.Pod.Name + ": delete, " + s.Why }

// Describe implements Step.
func (s PersistFallback) Describe() string { return s.Workload.GetName() + ": persist its fallback" }

// Describe implements Step.
func (s ForgetFallback) Describe() string { return s.Workload.GetName() + ": forget its fallback" }

// Describe implements Step.
func (s PatchStatus) Describe() string {
	return fmt.Sprintf("Deployment %s: status %d/%d updated, %d available",
		s.Deployment.Name, s.Status.UpdatedReplicas, s.Status.Replicas, s.Status.AvailableReplicas)
}
