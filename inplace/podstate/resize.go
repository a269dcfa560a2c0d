package podstate

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/nodes"
	"github.com/stayput/stayput/inplace/steps"
)

// ResizeDeadline is how long a kubelet has for a resize: the workload's progressDeadlineSeconds, or what those are by default where it has none; 0 for as long
// as it takes, as natively (HasProgressDeadline in pkg/controller/deployment/util).
func ResizeDeadline(progressDeadlineSeconds *int32) time.Duration {
	switch {
	case progressDeadlineSeconds == nil:
		return 10 * time.Minute
	case *progressDeadlineSeconds == math.MaxInt32:
		return 0
	}
	return time.Duration(*progressDeadlineSeconds) * time.Second
}

// IsBack reports whether a pod of the target that was half-way can forget it: its containers have again what the target says, or take too
// long for anybody to wait. If it is only a matter of time, of how much.
func (s *State) IsBack(deadline time.Duration, now time.Time) (bool, time.Duration) {
	if !s.Updated || !s.PartiallyPatched() || s.Resizes() {
		return false, 0
	}
	overdue, wait := s.Move.Overdue(s.Pod, deadline, now)
	return !s.Resizing && !s.Restarts() || s.Move.Refused(s.Pod) != "" || overdue != "", wait
}

// WhyInfeasible is why the pod cannot get the target's CPU and memory on its node; empty if it can, or nobody knows yet.
func (s *State) WhyInfeasible(node *corev1.Node) string {
	switch {
	case s.Updated:
		return ""
	case s.Resizes(): // what its kubelet says is of another
		return nodes.TooSmall(node, s.Pod, s.Containers)
	}
	return s.Move.Refused(s.Pod)
}

// AwaitsCapacity reports whether its node has no room for what the pod is to get, now or ever. It serves on until then.
func (s *State) AwaitsCapacity() bool {
	return s.Infeasible != "" || s.Resizing && s.Move.AwaitsCapacity(s.Pod)
}

// WhyReplaced is why only another pod can be one of the target in its place; nil if it can become one.
func (s *State) WhyReplaced() *inplace.Reason {
	switch reasons := s.Needs().Reasons; {
	case len(reasons) > 0:
		return &reasons[0]
	case s.Infeasible != "":
		return notResized(s, s.Infeasible)
	}
	return nil
}

// NotResized is why pods cannot get their CPU and memory where they are; nil if they may. Others could, elsewhere: the update is native then, and the native
// controller creates those that are not the target's yet. So who does not fit waits until all others have been updated in place and are counted where they are, but
// no longer than the deadline. Nobody waits for those that a partition keeps. As long as it protects any, the caller must not leave the update to that controller.
func NotResized(d *steps.PlanBuilder, pods iter.Seq[*State], counted bool, deadline time.Duration, now time.Time) *inplace.Reason {
	var infeasible *inplace.Reason
	others := !counted
	for s := range pods {
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
