package podstate

import (
	"cmp"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/steps"
)

// The subresource pods/resize takes resources and resize policies, and drops all else that is sent. So neither the mark nor the identity
// can go along, and a resize takes three writes (NextWrite):
//
//  1. The mark, with what each container had and gets (readiness.Move.Resize). A pod of a DaemonSet also gets the identity that no revision
//     has (partial.go).
//  2. CPU and memory, only of the containers that the mark names. manifests/base/own-power.yaml refuses others.
//  3. When the kubelet has done that: the next write of the move, as if there had been no resize.
//
// If the leader dies after the first, nothing has changed yet. If it dies after the second, the mark has the way back. An undo and a
// fallback take that way by the same subresource, and then the mark goes.
//
// Until the resize is done the pod counts as unavailable although it serves. Otherwise all pods could get a size that is too small at the
// same time. While the kubelet has not begun (PodResizePending) the pod is unchanged and counts as available, unless a container restarts
// for the resize, which may happen as soon as there is capacity.
//
// A resize that is not done within the deadline, for whatever reason, ends the update at once (readiness.Move.Overdue). The pods for which
// there was capacity have been resized by then, since a pod that waits for capacity keeps no other from its turn.

// resizeInProgress reports whether a noted resize is yet to be written, or to be done by the kubelet. A note for another edit, whose resize
// was never written, says nothing about the pod.
func (s *Work) resizeInProgress() bool {
	return len(s.Move.Resize) > 0 && (s.MidResize() || !s.Move.Resized(s.Pod))
}

// ResizeDeadline returns how long a kubelet has for a resize: the workload's progressDeadlineSeconds, or their default where the workload
// has none. 0 means that there is no deadline, as natively (HasProgressDeadline in pkg/controller/deployment/util).
func ResizeDeadline(progressDeadlineSeconds *int32) time.Duration {
	switch {
	case progressDeadlineSeconds == nil:
		return 10 * time.Minute
	case *progressDeadlineSeconds == math.MaxInt32:
		return 0
	}
	return time.Duration(*progressDeadlineSeconds) * time.Second
}

// IsBack reports whether a partially patched pod of the update revision can lose its mark: its containers have again what the update
// revision says, or take too long to wait for. If only time is needed, it returns how long to wait.
func (s *Work) IsBack(deadline time.Duration, now time.Time) (bool, time.Duration) {
	if !s.Updated || !s.PartiallyPatched() || s.Resizes() {
		return false, 0
	}
	overdue, wait := s.Move.Overdue(s.Pod, deadline, now)
	return !s.Resizing && !s.Restarts() || s.Move.Refused(s.Pod) != "" || overdue != "", wait
}

// WhyInfeasible returns why the pod cannot get the update revision's CPU and memory on its node; empty if it can, or if that is not known
// yet.
func (s *State) WhyInfeasible(node *corev1.Node) string {
	switch {
	case s.Updated:
		return ""
	case s.Resizes(): // what the kubelet reports is about another resize
		return TooSmall(node, s.Pod, s.Containers)
	}
	return s.Move.Refused(s.Pod)
}

// AwaitsCapacity reports whether the pod's node lacks capacity for what the pod is to get, now or ever. The pod serves on until then.
func (s *State) AwaitsCapacity() bool {
	return s.Infeasible != "" || s.Resizing && s.Move.AwaitsCapacity(s.Pod)
}

// WhyReplaced returns why only another pod in this pod's place can be one of the update revision; nil if this pod can become one.
func (s *State) WhyReplaced() *inplace.Reason {
	switch reasons := s.Needs().Reasons; {
	case len(reasons) > 0:
		return &reasons[0]
	case s.Infeasible != "":
		return notResized(s, s.Infeasible)
	}
	return nil
}

// NotResized returns why pods cannot get their CPU and memory on their nodes; nil if they may. New pods on other nodes could get them. So
// the update falls back, and the native controller creates the pods that are not of the update revision yet. A pod whose resize is
// infeasible therefore waits until all others have been updated in place and are counted in the update revision, but no longer than the
// deadline. The update does not wait for pods at the partition. As long as the partition protects any pod, the caller must not let the
// update fall back.
func NotResized(d *steps.PlanBuilder, pods []*State, counted bool, deadline time.Duration, now time.Time) *inplace.Reason {
	var infeasible *inplace.Reason
	others := !counted
	for _, s := range pods {
		overdue, wait := s.Move.Overdue(s.Pod, deadline, now)
		switch {
		case s.Updated || s.Surge || s.AtPartition:
		case !s.Resizes() && overdue != "":
			return notResized(s, overdue)
		case s.Infeasible != "":
			infeasible = cmp.Or(infeasible, notResized(s, s.Infeasible))
			d.Again(wait)
		default:
			others = true
			d.Again(wait)
		}
	}
	if others {
		return nil
	}
	return infeasible
}

func notResized(s *State, why string) *inplace.Reason {
	return &inplace.Reason{Code: inplace.CodeNotResized, Message: fmt.Sprintf("pod %s does not get its CPU and memory: %s", s.Pod.Name, why)}
}
