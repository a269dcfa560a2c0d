package engine

import (
	"cmp"
	"slices"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// Pace is one pass over the pods of a workload: the only loop in which pods go on, for all kinds, and whatever they restart for. What was
// begun goes on. Of the other pods, those begin that all filters let begin.
type Pace struct {
	*Update
	// Budget is how many more pods may be taken out of service. Spare is how many more may get CPU and memory besides.
	Budget podstate.Budget
	Spare  int
	// Left is what is left of the partition budget.
	Left podstate.PartitionBudget
	// Soon: the drain of a pod may be over within a batch window.
	Soon bool
	// asked: users ask about pods, and nothing is planned.
	asked   bool
	filters []Filter
}

// Pod is a pod that may go on.
type Pod struct {
	*podstate.State
	// Of is the pod without the restart that its own annotation asks for.
	Of *podstate.State
	// Why is what it is taken out of service for; empty for what it needs.
	Why string
	// Write makes its next write. Drained: it was out of service before. Write is nil if the native controller replaces the pod.
	Write func(drained bool)
}

// ByCost orders pods, as slices.SortFunc does: first those that do not serve, last those that are available.
func ByCost(a, b Pod) int { return podstate.ByCost(a.State, b.State) }

// Pace returns a pass of an update in which no pod has begun yet. The filters of its kind are asked as well.
func (u *Update) Pace(budget podstate.Budget, own ...Filter) *Pace {
	return &Pace{Update: u, Budget: budget, Left: u.Partition, filters: slices.Concat(ofUpdates, own, ofRestarts)}
}

// Why returns what the pod waits for at that door; nil if it may go on. If users ask, it is what they can understand, and not its turn.
func (p *Pace) Why(s *podstate.State, door Door) *steps.Wait {
	for _, f := range p.filters {
		if f.Guards&door == 0 {
			continue
		}
		wait := f.Wait(p, s)
		if wait == nil || p.asked && wait.Why == "" {
			continue
		}
		if wait.Filter, wait.Pod = f.Name, s.Pod; f.Quiet && !p.asked {
			wait.Why = ""
		}
		return wait
	}
	return nil
}

// Passes reports whether the pod goes on through that door, and counts it if so. Otherwise the plan says why not.
func (p *Pace) Passes(s *podstate.State, door Door) bool {
	if wait := p.Why(s, door); wait != nil {
		p.Plan.Wait(*wait)
		return false
	}
	for _, f := range p.filters {
		if f.Guards&door != 0 && f.Reserve != nil {
			f.Reserve(p, s)
		}
	}
	return true
}

// KeepTurns has pods keep their turns that are out of service for their restarts, unless the user pauses the rollout, raises the partition,
// or wants an image that is not on the pod's node yet.
func (p *Pace) KeepTurns(pods []*podstate.State) {
	for _, s := range pods {
		s.Turn = s.Restarts() && readiness.Out(s.Pod) && !s.AwaitsCapacity() && p.Passes(s, Keep)
	}
}

// GoOn makes the next writes of pods that have begun, and returns those that have not.
func (p *Pace) GoOn(pods []Pod) (rest []Pod) {
	for _, each := range pods {
		switch resized := each.Resizing && !each.Resizes(); {
		case each.Write == nil, each.ResizesAlive() && !each.MidResize(), each.NoRestart():
			rest = append(rest, each)
		case each.MidResize():
			each.Write(false)
		case resized: // its kubelet is about to do that
		case !each.Turn && each.Restarts():
			rest = append(rest, each)
		case each.Turn && p.Passes(each.State, Stop):
			each.Write(true)
		}
	}
	return rest
}

// Begin has pods begin, in that order. If a pod becomes available within a batch window, or may because it restarts, those that serve wait
// for that, so that the pod that may be unavailable instead starts together with them. Each lot of pods costs about as many writes as each
// pod: ReplicaSets are lowered and raised, and their controllers answer.
func (p *Pace) Begin(pods []Pod) {
	var serving []Pod
	for _, each := range pods {
		switch {
		case each.Write == nil:
			p.Left.Take(each.State) // it may be replaced at any moment
		case each.NoRestart():
			if p.Passes(each.State, Move) {
				each.Write(false)
			}
		case !p.Passes(each.State, Leave):
		case each.Serving && !each.ResizesAlive():
			serving = append(serving, each)
		default:
			p.start(each)
		}
	}
	p.Plan.MayStart(p.Budget.Left())
	left := p.Plan.CanWait(steps.DeferStart, steps.BatchWindow, p.seen.Now)
	soon := func(s *podstate.State) bool {
		restarts := !s.Applied && !s.Turn
		return restarts || 0 < s.AvailableIn && s.AvailableIn <= steps.BatchWindow
	}
	if len(serving) > 0 && left > 0 && slices.ContainsFunc(p.States, soon) {
		p.Plan.Defer(steps.DeferStart, left)
		return
	}
	for _, each := range serving {
		p.start(each)
	}
}

// start takes the pod out of service first if it can be drained.
func (p *Pace) start(each Pod) {
	if each.ResizesAlive() {
		each.Write(false)
		return
	}
	if !each.Resizes() && !each.VolumesFresh(p.Plan, p.seen.Now) {
		return
	}
	each.StaysIn, each.Turn, each.Of.Turn = each.Of.StaysIn, true, true
	if !each.Drains() {
		each.Write(false)
		return
	}
	p.TakeOut(each.State, cmp.Or(each.Why, each.Needs().OfContainers().String()))
}
