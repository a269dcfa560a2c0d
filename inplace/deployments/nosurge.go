package deployments

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/times"
)

// A surge pod runs beside the pods for which it was created, on any node. Where it cannot, an update with surge pods would wait until the
// deadline for nothing; natively, such an update never ends. If maxUnavailable is a percentage that rounds to 0, pods restart one at a
// time instead, without waiting. If the user has set it to 0 explicitly, the update waits: a free node may be added.

// UnplaceableAfter is how long the scheduler may find no node for surge pods. It tries again with every event that might help.
const UnplaceableAfter = 30 * time.Second

// noSurge reports whether the update uses no surge pods because there may be no room for them.
func (v *Planner) noSurge() bool { return v.whyNoSurge != "" && !apps.ExplicitZero(v.deployment) }

// unplaceable reports whether the scheduler has found no node for any surge pod for UnplaceableAfter; if that is only a matter of time,
// it returns how long it takes.
func (v *Planner) unplaceable() (bool, time.Duration) {
	if v.NewRS == nil || v.NewRS.Surge == 0 {
		return false, 0
	}
	surge := v.NewRS.SurgePods()
	for _, m := range surge {
		scheduled := apps.Condition(m.Pod, corev1.PodScheduled)
		if m.Pod.Spec.NodeName != "" || scheduled == nil || scheduled.Reason != corev1.PodReasonUnschedulable {
			return false, 0
		}
		if long, wait := times.Since(scheduled.LastTransitionTime.Time, UnplaceableAfter, v.seen.Now); !long {
			return false, wait
		}
	}
	return len(surge) >= v.NewRS.Surge, 0
}

// explainWait says why an update waits if no pod may be unavailable and a second pod may never be able to run.
func (v *Planner) explainWait() {
	if v.plan.Waiting == "" && v.whyNoSurge != "" && v.surging() && replicas.AnyToRestart(v.Members) && v.NewRS.Available() == 0 {
		v.plan.Waiting = "waiting for a second pod, as maxUnavailable is 0, and " + v.whyNoSurge
	}
}
