package statefulsets

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// kind says what is special about a StatefulSet.
type kind struct {
	controllerrevisions.Base
	StatefulSet *apps.StatefulSet
}

// Of returns the StatefulSet as a controllerrevisions.Kind.
func Of(s *apps.StatefulSet) controllerrevisions.Kind { return kind{StatefulSet: s} }

// Traits implements controllerrevisions.Kind. After NotFound the controller would count a pod as deleted in its status, would record
// SuccessfulDelete, and would not try again. After any other error it writes the status as it is, records FailedDelete with the message,
// and tries again later (performUpdate in pkg/controller/statefulset/stateful_set_control.go, recordPodEvent in stateful_pod_control.go).
// It watches no revisions (NewStatefulSetController in stateful_set.go).
func (kind) Traits() engine.Traits {
	return engine.Traits{ShortName: "sts", PodsBy: inplace.NativeController("statefulset-controller"), Scaled: true, InOrder: true,
		OwnPartition: "/spec/updateStrategy/rollingUpdate/partition"}
}

// Workload implements controllerrevisions.Kind.
func (k kind) Workload() engine.Workload {
	return engine.Workload{Object: k.StatefulSet, Kind: "StatefulSet", Template: k.StatefulSet.Spec.Template,
		MinReadySeconds: k.StatefulSet.Spec.MinReadySeconds,
		Kept:            inplace.KeptOnDelete(k.StatefulSet.Spec.UpdateStrategy.Type, k.StatefulSet.Labels)}
}

// On implements controllerrevisions.Kind: nothing follows from the snapshot.
func (k kind) On(*engine.Snapshot) controllerrevisions.Kind { return k }

// Replicas implements controllerrevisions.Kind.
func (k kind) Replicas() int { return k.StatefulSet.Replicas() }

// Strategy implements controllerrevisions.Kind. The API server sets RollingUpdate where a manifest names none.
func (k kind) Strategy() *inplace.Reason {
	switch strategy := k.StatefulSet.Spec.UpdateStrategy.Type; strategy {
	case "", appsv1.RollingUpdateStatefulSetStrategyType:
		return nil
	case appsv1.OnDeleteStatefulSetStrategyType:
		return inplace.NativeOnDelete(k.StatefulSet.Labels)
	default:
		return &inplace.Reason{Code: inplace.CodeStrategy, Path: "/spec/updateStrategy/type",
			Message: fmt.Sprintf("strategy %s is not known", strategy)}
	}
}

// Housekeeping implements controllerrevisions.Kind: it returns why the StatefulSet controller deletes the pod whatever its revision is
// (processReplica and processCondemned in pkg/controller/statefulset/stateful_set_control.go). A pod without a node cannot be updated in
// place.
func (k kind) Housekeeping(pod *corev1.Pod) string {
	switch {
	case !readiness.Live(pod):
		return "pod " + pod.Name + " has terminated"
	case !k.StatefulSet.Wants(k.StatefulSet.Ordinal(pod)):
		return "the StatefulSet no longer wants pod " + pod.Name
	case pod.Spec.NodeName == "":
		return "pod " + pod.Name + " is not scheduled yet"
	}
	return ""
}

// Kept implements controllerrevisions.Kind: the controller updates no pod below the partition.
func (k kind) Kept(pod *corev1.Pod) bool {
	return k.StatefulSet.Keeps(k.StatefulSet.Ordinal(pod))
}

// Preview implements controllerrevisions.Kind. The partition is the spec's own.
func (k kind) Preview(partition inplace.Partition) steps.Preview {
	pods := k.StatefulSet.Replicas()
	kept := min(max(k.StatefulSet.Partition(), partition.Keeps(pods)), pods)
	return steps.Preview{Pods: pods, AtPartition: kept, AtATime: k.StatefulSet.MaxUnavailable()}
}

// Lacks implements controllerrevisions.Kind: storageMatches of pkg/controller/statefulset/stateful_set_utils.go. Claim templates do not
// change, but a StatefulSet may be created anew with others, over the pods of the last one. Its controller then updates nothing.
func (k kind) Lacks(pod *corev1.Pod) *inplace.Reason {
	for _, template := range k.StatefulSet.Spec.VolumeClaimTemplates {
		claims := func(volume corev1.Volume) bool {
			return volume.Name == template.Name && volume.PersistentVolumeClaim != nil &&
				volume.PersistentVolumeClaim.ClaimName == template.Name+"-"+pod.Name
		}
		if !slices.ContainsFunc(pod.Spec.Volumes, claims) {
			return &inplace.Reason{Code: inplace.CodeClaim, Path: "/spec/volumeClaimTemplates",
				Message: fmt.Sprintf("pod %s does not have the volume of claim template %s", pod.Name, template.Name)}
		}
	}
	return nil
}

// Compare implements controllerrevisions.Kind: the highest ordinal comes first.
func (k kind) Compare(a, b *corev1.Pod) int {
	return cmp.Or(k.StatefulSet.Ordinal(b)-k.StatefulSet.Ordinal(a), cmp.Compare(a.Name, b.Name))
}

// Finished implements controllerrevisions.Kind.
func (k kind) Finished() bool {
	s, status, wanted := k.StatefulSet, k.StatefulSet.Status, k.StatefulSet.Replicas()
	return status.ObservedGeneration >= s.Generation && int(status.AvailableReplicas) >= wanted &&
		(int(status.UpdatedReplicas) >= wanted-s.Partition() || status.CurrentRevision == status.UpdateRevision)
}
