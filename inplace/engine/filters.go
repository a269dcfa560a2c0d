package engine

import (
	"fmt"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// Door is what a pod is about to do.
type Door int

// The doors.
const (
	Move   Door = 1 << iota // it gets another identity, and its containers go on running
	Keep                    // it stays out of service until its containers stop
	Leave                   // it is taken out of service, or its containers stop while it serves, or they get CPU and memory
	Remove                  // it is taken out of service as a surge pod to remove
	Stop                    // its containers stop after its drain
)

// Filter is a reason for which a pod does not go on now: the word is that of the scheduler framework. Filters are pure, and asked in their
// order. What the first one says is what the pod waits for, in events and where a user asks: see steps.Wait and Update.PodProgress.
type Filter struct {
	Name string
	// Guards are the doors at which it is asked.
	Guards Door
	// Wait returns why the pod waits; nil if it may go on.
	Wait func(p *Pace, s *podstate.State) *steps.Wait
	// Reserve counts a pod that all filters have let go on. It is nil where nothing is counted.
	Reserve func(p *Pace, s *podstate.State)
	// Quiet: a user who asks about the pod is told, and no event, phase or message tells it.
	Quiet bool
}

// The filters in their order. A new reason to wait is one more. Those of updates do not concern restarts that annotations of pods ask for.
var (
	ofUpdates = []Filter{
		{Name: "Window", Guards: Move | Keep | Leave, Wait: window, Quiet: true},
		{Name: "Partition", Guards: Move | Keep | Leave, Wait: partition, Reserve: takePartition, Quiet: true},
		{Name: "Paused", Guards: Move | Keep | Leave, Wait: paused, Quiet: true},
		{Name: "Order", Guards: Leave, Wait: inOrder, Quiet: true},
	}
	ofRestarts = []Filter{
		{Name: steps.FilterImages, Guards: Keep | Leave, Wait: images},
		{Name: "Starting", Guards: Leave, Wait: starting},
		{Name: "MaxUnavailable", Guards: Leave, Wait: maxUnavailable, Reserve: takeAvailable},
		{Name: steps.FilterBudget, Guards: Leave | Remove, Wait: shared(budgets), Reserve: reserve(budgets)},
		{Name: steps.FilterLimit, Guards: Leave | Remove, Wait: shared(limits), Reserve: reserve(limits)},
		{Name: steps.FilterHooks, Guards: Stop, Wait: hooks},
		{Name: "Drain", Guards: Stop, Wait: drain},
	}
)

// paused: the user has paused the rollout.
func paused(p *Pace, _ *podstate.State) *steps.Wait {
	if !p.Paused {
		return nil
	}
	return &steps.Wait{Why: "the rollout to be resumed"}
}

// images: its new images are not on its node. A plan has said so before (prepull.PrePull). Users are told how far its node is.
func images(p *Pace, s *podstate.State) *steps.Wait {
	if p.asked {
		return &steps.Wait{Why: p.seen.Pull.Awaits(s.Pod)}
	}
	if s.MayStart() {
		return nil
	}
	return &steps.Wait{}
}

// starting: the pod is new, and not Ready.
func starting(p *Pace, s *podstate.State) *steps.Wait {
	if starts, wait := s.Starting(p.seen.Now); starts && !s.Turn && !s.IsCounted() {
		return &steps.Wait{Again: wait}
	}
	return nil
}

// maxUnavailable: as many pods are out of service as may be.
func maxUnavailable(p *Pace, s *podstate.State) *steps.Wait {
	left := p.Budget
	if s.ResizesAlive() {
		left = left.And(p.Spare)
	}
	if s.IsCounted() || left.Allows(s) {
		return nil
	}
	return &steps.Wait{}
}

func takeAvailable(p *Pace, s *podstate.State) {
	if !s.IsCounted() {
		p.Budget.Take(s)
	}
}

// hooks: pre-restart hooks hold the pod (podstate/hooks.go).
func hooks(_ *Pace, s *podstate.State) *steps.Wait {
	if s.HeldFor == 0 {
		return nil
	}
	why := fmt.Sprintf("%s to be removed from pod %s", s.Hooks, s.Pod.Name)
	return &steps.Wait{For: s.Hooks.String(), Why: why, Again: s.HeldFor}
}

// drain: clients are still sent to the pod, or it has yet to end what it does for them.
func drain(p *Pace, s *podstate.State) *steps.Wait {
	over, left := s.Drained(p.seen.Endpoints, p.seen.Settings.Drain, p.seen.Now)
	if over {
		return nil
	}
	soon := left <= steps.BatchWindow || p.seen.Endpoints[s.Pod.UID].OutSince.IsZero()
	p.Soon = p.Soon || soon && !s.Removing
	return &steps.Wait{Again: left}
}
