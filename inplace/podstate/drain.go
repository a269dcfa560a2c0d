package podstate

import (
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/serving"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// DrainState is how far a pod whose turn it is has come in its drain; zero for others.
type DrainState struct {
	// Over: it may be patched now so that containers restart. This is later than when it stopped to be Ready, which is when it counts as missing.
	Over bool
	// Soon: not yet, but perhaps within a beat.
	Soon bool
	// Left is when to look again although nothing changes.
	Left time.Duration
}

// DrainState of the pod, whatever the kind of its workload.
func (t Turns) DrainState(s *State, endpoints serving.Endpoints, drain time.Duration, now time.Time) DrainState {
	if !t[s] {
		return DrainState{}
	}
	endpoint := endpoints[s.Pod.UID]
	over, left := endpoint.Drained(s.Pod, drain, s.servesOn(), now)
	return DrainState{Over: over, Soon: !over && (left <= steps.BatchWindow || endpoint.OutSince.IsZero()), Left: left}
}

// OnTimeUntil is until when the pod was drained, or its containers stopped, within the time that they have for it; zero if neither.
func (t Turns) OnTimeUntil(s *State, endpoints serving.Endpoints, drain time.Duration, now time.Time) time.Time {
	stopped := s.Move.OnTimeUntil(s.Pod, now)
	if !t[s] || !readiness.Closed(s.Pod) || t.DrainState(s, endpoints, drain, now).Over {
		return stopped
	}
	most := conditions.Condition(s.Pod, inplace.ConditionServing).LastTransitionTime.Add(serving.DrainPatience + drain)
	return times.Latest(stopped, times.Earliest(now, most))
}

// servesOn is how long the containers that the pod is to be patched for go on serving after that: what their preStop hooks sleep, as far as
// the grace period lets them. One without such a hook may be told to stop at once, and so may a pod that is given back.
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
