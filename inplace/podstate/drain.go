package podstate

import (
	"time"

	"github.com/stayput/stayput/inplace/readiness"
)

// Drained reports whether the pod is drained, so that its containers may stop as far as clients are concerned. If not, it returns the time
// after which to look again even if nothing changes.
func (s *State) Drained(endpoints Endpoints, drain time.Duration, now time.Time) (over bool, left time.Duration) {
	return endpoints[s.Pod.UID].Drained(s.Pod, drain, s.servesOn(), now)
}

// OnTimeUntil returns until when the pod was drained, or its containers stopped, within the time that they have for it; zero if neither
// happened. Neither a drain nor a hook can take longer than it may: both are over then.
func (s *State) OnTimeUntil(endpoints Endpoints, drain time.Duration, now time.Time) time.Time {
	if s.Turn && readiness.Out(s.Pod) {
		if over, _ := s.Drained(endpoints, drain, now); !over || s.HeldFor > 0 {
			return now
		}
	}
	return s.Move.OnTimeUntil(s.Pod, now)
}

// servesOn returns how long the containers to be patched go on serving after the patch: the sleep of their preStop hooks, as far as the
// grace period allows it. It is 0 for a container without such a hook, because that container may be told to stop at once, and for a surge
// pod that is being removed.
func (s *State) servesOn() time.Duration {
	if s.Removing || !s.Restarts() {
		return 0
	}
	shortest := readiness.GracePeriod(s.Pod)
	for change := range s.Containers.Restarting() {
		shortest = min(shortest, readiness.Sleeps(s.Pod, change.Container))
	}
	return shortest
}
