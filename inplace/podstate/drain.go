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
func (t Turns) DrainState(s *State, endpoints Endpoints, drain time.Duration, now time.Time) DrainState {
	if !t[s] {
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
func (t Turns) OnTimeUntil(s *State, endpoints Endpoints, drain time.Duration, now time.Time) time.Time {
	stopped := s.Move.OnTimeUntil(s.Pod, now)
	if !t[s] || !readiness.Closed(s.Pod) || t.DrainState(s, endpoints, drain, now).Over {
		return stopped
	}
	if s.HeldFor > 0 {
		return now
	}
	return inplace.Latest(stopped, inplace.Earliest(now, readiness.ClosedAt(s.Pod).Add(DrainPatience+drain)))
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

// MayDrainStopping reports whether the pod was patched while it served, and may be taken out of service until its containers stop.
func (s *State) MayDrainStopping() bool {
	return s.stopsUndrained() && readiness.MayDrainStopping(s.Pod) && s.awaitsMoved()
}

// StillStopping reports whether the gate of such a pod stays closed.
func (s *State) StillStopping() bool { return s.stopsUndrained() && readiness.StillStopping(s.Pod) }

// stopsUndrained reports whether containers of the pod have yet to restart for a patch that was made while it served: of an update, which
// leaves the pod partially patched, or for a request of the pod itself. Where the update has more to patch the pod serves on: its
// containers may not stop for the last patch.
func (s *State) stopsUndrained() bool {
	return s.Undrained && !s.Applied && (!s.PartiallyPatched() || !s.Restarts())
}

// awaitsMoved reports whether the user waits for a container that was patched.
func (s *State) awaitsMoved() bool {
	for name, before := range s.Move.Containers {
		if before.Restart || !s.Auxiliary.Has(name) {
			return true
		}
	}
	return false
}
