package deployments

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// A surge pod runs beside the pods for which it was created, on any node. Where it cannot, an update with surge pods would wait until the
// deadline for nothing; natively, such an update never ends. If maxUnavailable is a percentage that rounds to 0, pods restart one at a
// time instead, without waiting. If the user has set it to 0 explicitly, the update waits: a free node may be added.

// UnplaceableAfter is how long the scheduler may find no node for surge pods. It tries again with every event that might help.
const UnplaceableAfter = 30 * time.Second

// NoSurge is noted on the new ReplicaSet and says that there was no room for surge pods, and that the update goes on without them.
const NoSurge = "0"

// surge is whether the update uses surge pods, and whether there is room for them.
type surge struct {
	// used: the update may use surge pods, and there may be room for them. givenUp: it is noted that there was none.
	used, givenUp bool
	// whyAlone is why a surge pod may find no node beside the other pods; empty if no reason is known.
	whyAlone string
	// whyNone is why there can be no surge pod; empty if there can be one.
	whyNone string
	// noRoom: the deadline has passed before there were surge pods, or no node was found for them. It is false where the user has set
	// maxUnavailable to 0 explicitly. noRoomIn is how long that takes, if it is only a matter of time.
	noRoom   bool
	noRoomIn time.Duration
}

// MaySurge reports whether an update may use surge pods, as the annotation says.
func (r Rollout) MaySurge() bool {
	d := r.Deployment
	if !d.Rolls() || apps.Desired(d) == 0 {
		return false
	}
	switch r.Seen.Settings.Surge {
	case inplace.SurgeReplace:
		return d.MaxSurge() > 0
	case inplace.SurgeNeeded:
		return d.MaxUnavailable() == 0
	case inplace.SurgeNever:
	}
	return false
}

// surgeOf returns whether the update to the new ReplicaSet uses surge pods.
func surgeOf(r Rollout, newRS *apps.ReplicaSet, whyAlone string) surge {
	s := surge{whyAlone: whyAlone, givenUp: newRS != nil && newRS.Labels[inplace.LabelSurgeReplicas] == NoSurge}
	s.used = r.MaySurge() && !s.givenUp && (whyAlone == "" || apps.ExplicitZero(r.Deployment))
	return s
}

// withRoom adds whether there is room for surge pods.
func (s surge) withRoom(r Rollout, sets Sets) surge {
	s.whyNone = whyNoSurgePod(r, sets)
	switch {
	case !s.used || !sets.anyPod((*Pod).ToRestart) || apps.ExplicitZero(r.Deployment):
	case Overdue(r.Deployment):
		s.noRoom = true
	default:
		s.noRoom, s.noRoomIn = unplaceable(sets.New, r.Seen.Now)
	}
	return s
}

// provedNoRoom reports whether there is no room for surge pods and whyNone says why.
func (s surge) provedNoRoom() bool { return s.noRoom && s.whyNone != "" }

// unplaceable reports whether the scheduler has found no node for any surge pod for UnplaceableAfter; if that is only a matter of time,
// it returns how long it takes.
func unplaceable(newRS *Set, now time.Time) (bool, time.Duration) {
	if newRS == nil || newRS.Surge == 0 {
		return false, 0
	}
	surge := newRS.SurgePods()
	for _, m := range surge {
		scheduled := apps.Condition(m.Pod, corev1.PodScheduled)
		if m.Pod.Spec.NodeName != "" || scheduled == nil || scheduled.Reason != corev1.PodReasonUnschedulable {
			return false, 0
		}
		if long, wait := inplace.Since(scheduled.LastTransitionTime.Time, UnplaceableAfter, now); !long {
			return false, wait
		}
	}
	return len(surge) >= newRS.Surge, 0
}

// whyNoSurgePod returns why there can be no surge pod; empty if there can be one. A surge pod that has a node but does not work is
// another matter: the new version may be broken.
func whyNoSurgePod(r Rollout, sets Sets) string {
	newRS := sets.New
	if newRS == nil || newRS.Surge == 0 {
		return ""
	}
	why, absent := "", newRS.Missing()
	for _, m := range newRS.SurgePods() {
		if m.Pod.Spec.NodeName == "" {
			absent++
			why = ptr.Deref(apps.Condition(m.Pod, corev1.PodScheduled), corev1.PodCondition{}).Message
		}
	}
	if absent < newRS.Surge {
		return ""
	}
	if failure := (StatusFormula{Sets: r.OldestFirst(), New: newRS.Rs}).ReplicaFailure(); failure != nil {
		why = cmp.Or(why, failure.Message)
	}
	return strings.TrimSuffix("no room for surge pods: "+why, ": ")
}
