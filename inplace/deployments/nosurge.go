package deployments

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/times"
)

// A borrowed pod runs beside those for which it is borrowed, on whatever node it comes to. Where it may not, borrowing would wait for the
// deadline and for nothing; natively such an update hangs for ever. With a percentage, which only happens to round to none, pods restart one
// at a time instead, at once. Who wrote that no pod may be unavailable is asked to wait: a free node may come.

// UnplaceableAfter is how long the scheduler may find no node for what was borrowed. It tries again with every event that might help.
const UnplaceableAfter = 30 * time.Second

// noSurge: nothing is borrowed, since it would be in vain.
func (v *Planner) noSurge() bool { return v.whyNoSurge != "" && !apps.ExplicitZero(v.Deployment) }

// unplaceable reports whether no node has been found for anything that was borrowed, for long; if it is only a matter of time, of how much.
func (v *Planner) unplaceable() (bool, time.Duration) {
	if v.NewRS == nil || v.NewRS.Surge == 0 {
		return false, 0
	}
	surge := v.NewRS.SurgePods()
	for _, m := range surge {
		scheduled := conditions.Condition(m.Pod, corev1.PodScheduled)
		if m.Pod.Spec.NodeName != "" || scheduled == nil || scheduled.Reason != corev1.PodReasonUnschedulable {
			return false, 0
		}
		if long, wait := times.Since(scheduled.LastTransitionTime.Time, UnplaceableAfter, v.Now); !long {
			return false, wait
		}
	}
	return len(surge) >= v.NewRS.Surge, 0
}

// explainWait says why an update waits that was told to miss no pod, where a second one may never run.
func (v *Planner) explainWait() {
	if v.Waiting == "" && v.whyNoSurge != "" && v.surging() && replicas.AnyToRestart(v.Members) && v.NewRS.Available() == 0 {
		v.Waiting = "waiting for a second pod, as maxUnavailable is 0, and " + v.whyNoSurge
	}
}
