package podstate

import (
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
)

// Drained reports whether the pod is drained, so that its containers may stop as far as clients are concerned. If not, it returns the time
// after which to look again even if nothing changes.
func (s *State) Drained(endpoints Endpoints, drain time.Duration, now time.Time) (over bool, left time.Duration) {
	return endpoints[s.Pod.UID].Drained(s.Pod, drain, s.servesOn(), now)
}

// OnTimeUntil returns until when the pod was drained, or its containers stopped, within the time that they have for it; zero if neither
// happened.
func (s *State) OnTimeUntil(endpoints Endpoints, drain time.Duration, now time.Time) time.Time {
	stopped := s.Move.OnTimeUntil(s.Pod, now)
	if !s.Turn || !readiness.Out(s.Pod) {
		return stopped
	}
	if s.HeldFor > 0 {
		return now
	}
	if over, _ := s.Drained(endpoints, drain, now); over {
		return stopped
	}
	return inplace.Latest(stopped, inplace.Earliest(now, readiness.OutAt(s.Pod).Add(DrainPatience+drain)))
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
