package deployments

import (
	"time"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/steps"
)

// pace says which pods move.
type pace struct {
	turns podstate.Turns
	// leaving are the pods that move to the new ReplicaSet now, by the ReplicaSet that they leave.
	leaving map[*replicas.Set][]*replicas.Pod
	// reserved is for how many pods that need no restart the replicas of the ReplicaSet that they leave have been lowered already.
	reserved map[*replicas.Set]int
	// anySoon: another pod may be able to move together with those within a batch window.
	anySoon bool
	// partition is what is left of the partition budget.
	partition podstate.PartitionBudget
}

// pacer decides which pods move.
type pacer struct {
	*Planner
	pace
	blocked podstate.Blocked
	// budget is how many more pods may become unavailable.
	budget int
}

// pacing returns a pacer that has decided nothing yet. Blocked pods get no turn.
func (v *Planner) pacing(blocked podstate.Blocked) *pacer {
	return &pacer{Planner: v, blocked: blocked, budget: v.budget(), pace: pace{turns: podstate.Turns{}, partition: v.update.Partition,
		leaving: map[*replicas.Set][]*replicas.Pod{}, reserved: map[*replicas.Set]int{}}}
}

// decide decides which pods have their turn, and which leave their ReplicaSets.
func (p *pacer) decide() pace {
	if p.NewRS == nil {
		return p.pace
	}
	p.keepTurns()
	inOrder, wait := p.inOrder()
	p.plan.Again(wait)
	open := inOrder && !p.anyRemoving()
	for _, s := range p.Sets {
		p.addDrained(s)
	}
	for _, s := range p.Sets {
		p.addNoRestart(s, open)
	}
	p.finishResizes()
	// No pod is taken out of service before the marks are stored: if they cannot be, the update falls back.
	if p.paused() || !p.Sets.AllUpdating(p.NewRS) {
		return p.pace
	}
	if open || inOrder && p.servesForOthers(p.budget) {
		p.startIdle()
	}
	if open {
		p.startResizes()
		p.startAvailable()
	}
	return p.pace
}

// inOrder reports whether nothing has to be scaled. Scaling comes first; until it is done, only what has begun goes on. If that is only a
// matter of time, it returns how long it takes.
func (v *Planner) inOrder() (bool, time.Duration) {
	if v.Sets.Total()-v.Sets.Surge() != v.desired() || !v.Sets.AnyUpdating() && !v.Sets.AllObserved() || v.unmarkedSurge() {
		return false, 0
	}
	return v.quiet()
}

func (p *pacer) keepTurns() {
	for _, m := range p.Members {
		if p.keepsTurn(m) && (m.Removing || p.partition.Take(&m.State)) {
			p.turns[&m.State] = true
		}
	}
}

// keepsTurn reports whether the pod has its turn and keeps it: it does until it is patched, unless the user pauses the rollout, raises
// the partition, or wants an image that is not on the pod's node yet.
func (p *pacer) keepsTurn(m *replicas.Pod) bool {
	return readiness.Closed(m.Pod) && (m.Removing || p.blocked.MayStart(&m.State) && !p.paused() &&
		m.Owner != p.NewRS && m.Restarts() && !m.ToReplace && !m.AwaitsCapacity())
}

// addDrained adds the drained pods of an old ReplicaSet to those that leave it. Of its pods that need no restart, it reserves as many as
// replicas were lowered for: those leave, whatever has happened since.
func (p *pacer) addDrained(s *replicas.Set) {
	if s == p.NewRS {
		return
	}
	for _, m := range s.Pods {
		drain := p.update.DrainState(&m.State, p.turns)
		p.plan.Again(drain.Left)
		switch {
		case !drain.Over || m.Removing:
		case !m.Resizing:
			p.leaving[s] = append(p.leaving[s], m)
		case m.RestartsToResize() && !m.MidResize():
			p.plan.Step(m.Advance(p.NewRS.Rs, true, p.seen.Now))
		}
		p.anySoon = p.anySoon || drain.Soon && !m.Removing
	}
	if p.Sets.AnyUpdating() {
		p.reserved[s] = min(max(0, s.Surplus()-len(p.leaving[s])), len(s.NoRestart()))
		for _, m := range s.NoRestart()[:p.reserved[s]] {
			p.partition.TakeAnyway(&m.State)
		}
	}
}

// addNoRestart adds the pods that need no restart: those that are reserved, and more. While such a pod moves, no ReplicaSet counts it:
// if Stayput died, the pod would be deleted. So only as many move at a time as may be unavailable.
func (p *pacer) addNoRestart(s *replicas.Set, open bool) {
	if s == p.NewRS {
		return
	}
	for i, m := range s.NoRestart() {
		switch {
		case i < p.reserved[s]:
		case !open || p.paused() && !m.PartiallyPatched():
			continue
		case m.Ready() && p.budget <= -p.spare(), !p.partition.Take(&m.State):
			continue
		case m.Ready():
			p.budget--
		}
		p.leaving[s] = append(p.leaving[s], m)
	}
}

// spare returns how many pods may move without a restart although none may be unavailable: one, because no surge pod is created for that.
func (p *pacer) spare() int {
	if p.maxUnavailable() == 0 && p.Sets.Surge() == 0 {
		return 1
	}
	return 0
}

// startIdle gives pods their turn that must restart and do not serve anyway.
func (p *pacer) startIdle() {
	unproven := p.unproven()
	for _, m := range p.Members {
		if !m.Startable(p.turns, p.blocked) || m.Ready() {
			continue
		}
		if starting, wait := m.Starting(p.seen.Now); starting {
			p.plan.Again(wait)
			continue
		}
		// A pod that has never run what it has now loses nothing by a restart: an undo must always succeed.
		if (!m.Applied || unproven < p.maxUnavailable()+int(p.deployment.MaxSurge())) && p.partition.Take(&m.State) {
			unproven++
			p.startOne(m)
		}
	}
}

// startAvailable takes as many pods out of service as may be unavailable. If a pod becomes available within a batch window, it waits for
// that, so that the pod that may be unavailable instead starts together with them.
func (p *pacer) startAvailable() {
	var next []*replicas.Pod
	for _, m := range p.Members {
		if m.Startable(p.turns, p.blocked) && m.Available && len(next) < p.budget && p.partition.Take(&m.State) {
			next = append(next, m)
		}
	}
	left := p.plan.CanWait(steps.DeferStart, steps.BatchWindow, p.seen.Now)
	if len(next) > 0 && replicas.AnyAvailableSoon(p.Members) && left > 0 {
		p.plan.Defer(steps.DeferStart, left)
		return
	}
	for _, m := range next {
		p.startOne(m)
	}
}

// startOne starts a pod, with a drain if it can be drained.
func (p *pacer) startOne(m *replicas.Pod) {
	if !m.VolumesFresh(p.plan, p.seen.Now) {
		return
	}
	p.turns[&m.State] = true
	if !m.Drains() {
		p.plan.Step(m.Advance(p.NewRS.Rs, false, p.seen.Now))
		return
	}
	p.plan.Step(podstate.CloseGate(m.Pod, p.seen.Now, m.Needs().OfContainers().String()))
}

// budget returns how many more available pods may become unavailable: those that would stay available if Stayput died now, minus those
// that must be available. So missing and terminating pods count as unavailable.
func (v *Planner) budget() int {
	safe := 0
	for _, s := range v.Sets {
		safe += s.Safe()
	}
	return safe - (v.desired() - v.maxUnavailable())
}

// unproven counts the pods on the update revision, or on their way to it, that are not known to work. Natively there are at most
// maxUnavailable + maxSurge: reconcileOldReplicaSets in pkg/controller/deployment/rolling.go. Without this limit, a moment in which all
// old pods are unready would put all of them on a revision that may be broken.
func (p *pacer) unproven() int {
	unproven := max(0, p.NewRS.Size()-len(p.NewRS.Pods))
	for _, m := range p.Members {
		onNewRS := m.Owner == p.NewRS || m.PartiallyPatched() && !m.Restarts()
		if p.turns[&m.State] || onNewRS && !m.Available {
			unproven++
		}
	}
	return unproven
}

// maxUnavailable returns how many pods may be unavailable: what the native controller allows. A percentage that rounds to 0 counts as 1,
// unless the update uses surge pods. With an explicit 0, the update uses surge pods, or is native. Recreate allows its only pod to be
// unavailable.
func (v *Planner) maxUnavailable() int {
	if v.surging() {
		return 0
	}
	return max(1, int(v.deployment.MaxUnavailable()))
}
