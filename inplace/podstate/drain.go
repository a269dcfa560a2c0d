package podstate

import (
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// DrainState is the progress of the drain of a pod that has its turn; zero for other pods.
type DrainState struct {
	// Over: the pod may be patched now so that containers restart: it is drained, and no hook holds it. This is later than the moment at
	// which the pod stops being Ready, from which on it counts as unavailable.
	Over bool
	// Soon: the drain is not over, but may be within a batch window.
	Soon bool
	// Left is the time after which to look again even if nothing changes.
	Left time.Duration
}

// DrainState returns the progress of the pod's drain, for any kind of workload.
func (s *State) DrainState(endpoints Endpoints, drain time.Duration, now time.Time) DrainState {
	if !s.Turn {
		return DrainState{}
	}
	endpoint := endpoints[s.Pod.UID]
	over, left := endpoint.Drained(s.Pod, drain, s.servesOn(), now)
	if s.HeldFor > 0 {
		return DrainState{Left: inplace.Sooner(left, s.HeldFor)}
	}
	return DrainState{Over: over, Soon: !over && (left <= steps.BatchWindow || endpoint.OutSince.IsZero()), Left: left}
}

// OnTimeUntil returns until when the pod was drained, or its containers stopped, within the time that they have for it; zero if neither
// happened.
func (s *State) OnTimeUntil(endpoints Endpoints, drain time.Duration, now time.Time) time.Time {
	stopped := s.Move.OnTimeUntil(s.Pod, now)
	if !s.Turn || !readiness.Out(s.Pod) || s.DrainState(endpoints, drain, now).Over {
		return stopped
	}
	if s.HeldFor > 0 {
		return now
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
