package deployments

import (
	"slices"
	"time"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// pace says which pods move.
type pace struct {
	// leaving are the pods that move to the new ReplicaSet now, by the ReplicaSet that they leave.
	leaving map[*Set][]*Pod
	// anySoon: another pod may be able to move together with those within a batch window.
	anySoon bool
}

// pacer decides which pods move.
type pacer struct {
	*observed
	pace
	// budget is how many more pods may be taken out of service, partition what is left of the partition budget.
	budget    podstate.Budget
	partition podstate.PartitionBudget
	// unproven counts the pods that are not known to work: see countUnproven.
	unproven int
	// reserved is for how many pods that need no restart the replicas of the ReplicaSet that they leave have been lowered already.
	reserved map[*Set]int
}

// pacer returns a pacer that has decided nothing yet.
func (o *observed) pacer() *pacer {
	return &pacer{observed: o, budget: o.budget(), partition: o.update.Partition, reserved: map[*Set]int{},
		pace: pace{leaving: map[*Set][]*Pod{}}}
}

// decide decides which pods have their turn, and which leave their ReplicaSets.
func (p *pacer) decide() pace {
	if p.sets.New == nil {
		return p.pace
	}
	p.keepTurns()
	inOrder, wait := p.inOrder()
	p.update.Plan.Again(wait)
	open := inOrder && !p.sets.AnyRemoving() // until a surge pod is removed, no other pod that serves has its turn
	for _, s := range p.sets.Old() {
		p.addDrained(s)
	}
	for _, s := range p.sets.Old() {
		p.addNoRestart(s, open)
	}
	p.finishResizes()
	// No pod is taken out of service before the marks are stored: if they cannot be, the update falls back.
	if p.paused() || !p.sets.AllUpdating() {
		return p.pace
	}
	p.unproven = p.countUnproven()
	// A surge pod that is to be removed may serve until another pod does, which may have to restart for that.
	if open || inOrder && p.removalWaits() {
		p.startIdle()
	}
	if open {
		p.startResizes()
		p.startServing()
	}
	return p.pace
}

// inOrder reports whether nothing has to be scaled. Scaling comes first; until it is done, only what has begun goes on. If that is only a
// matter of time, it returns how long it takes.
func (p *pacer) inOrder() (bool, time.Duration) {
	sets := p.sets
	if sets.Total()-sets.Surge() != p.sets.Wanted || !sets.AnyUpdating() && !sets.AllObserved() || sets.UnmarkedSurge() {
		return false, 0
	}
	return p.bypass.over()
}

// removalWaits reports whether a surge pod that is to be removed serves until another pod does.
func (p *pacer) removalWaits() bool {
	return slices.ContainsFunc(p.sets.Pods, func(m *Pod) bool {
		return m.Removing && m.Available && (p.budget.Available <= 0 || !p.update.Allows(&m.State))
	})
}

func (p *pacer) keepTurns() {
	for _, m := range p.sets.Pods {
		if p.keepsTurn(m) && (m.Removing || p.partition.Take(&m.State)) {
			m.Turn = true
		}
	}
}

// keepsTurn reports whether the pod has its turn and keeps it: it does until it is patched, unless the user pauses the rollout, raises
// the partition, or wants an image that is not on the pod's node yet.
func (p *pacer) keepsTurn(m *Pod) bool {
	needsIt := m.Owner != p.sets.New && m.Restarts() && !m.ToReplace
	mayRestart := !p.paused() && m.MayStart() && !m.AwaitsCapacity()
	return readiness.Out(m.Pod) && (m.Removing || needsIt && mayRestart)
}

// addDrained adds the drained pods of an old ReplicaSet to those that leave it. Of its pods that need no restart, it reserves as many as
// replicas were lowered for: those leave, whatever has happened since.
func (p *pacer) addDrained(s *Set) {
	for _, m := range s.Pods {
		drain := p.update.DrainState(&m.State)
		p.update.Plan.Again(drain.Left)
		switch {
		case !drain.Over || m.Removing:
		case !m.Resizing:
			p.leaving[s] = append(p.leaving[s], m)
		case m.RestartsToResize() && !m.MidResize():
			p.update.Plan.Step(m.Advance(p.sets.New.Rs, true, p.Seen.Now))
		}
		p.anySoon = p.anySoon || drain.Soon && !m.Removing
	}
	if p.sets.AnyUpdating() {
		p.reserved[s] = min(max(0, s.Surplus()-len(p.leaving[s])), len(s.NoRestart()))
		for _, m := range s.NoRestart()[:p.reserved[s]] {
			p.partition.TakeAnyway(&m.State)
		}
	}
}

// addNoRestart adds the pods that need no restart: those that are reserved, and more. While such a pod moves, no ReplicaSet counts it:
// if Stayput died, the pod would be deleted. So only as many move at a time as may be unavailable. One that is Ready moves with them, even
// where its kubelet may revoke that.
func (p *pacer) addNoRestart(s *Set, open bool) {
	for i, m := range s.NoRestart() {
		left := p.budget.And(p.spare())
		switch {
		case i < p.reserved[s]:
		case !open || p.paused() && !m.PartiallyPatched():
			continue
		case m.Ready() && left.Serving <= 0, !left.Allows(&m.State), !p.partition.Take(&m.State):
			continue
		default:
			p.budget.Take(&m.State)
		}
		p.leaving[s] = append(p.leaving[s], m)
	}
}

// spare returns how many pods may move without a restart although none may be unavailable: one, because no surge pod is created for that.
func (p *pacer) spare() int {
	if p.maxUnavailable() == 0 && p.sets.Surge() == 0 {
		return 1
	}
	return 0
}

// startIdle gives pods their turn that must restart and do not serve anyway.
func (p *pacer) startIdle() {
	for _, m := range p.sets.Pods {
		if !m.Startable() || m.Ready() {
			continue
		}
		if starting, wait := m.Starting(p.Seen.Now); starting {
			p.update.Plan.Again(wait)
			continue
		}
		// A pod that has never run what it has now loses nothing by a restart: an undo must always succeed.
		if (!m.Applied || p.mayRisk()) && p.partition.Take(&m.State) {
			p.unproven++
			p.startOne(m)
		}
	}
}

// startServing takes as many pods out of service as may be: first those that are not available yet. If a pod becomes available within a
// batch window, it waits for that, so that the pod that may be unavailable instead starts together with them.
func (p *pacer) startServing() {
	var next []*Pod
	for _, m := range slices.SortedStableFunc(slices.Values(p.sets.Pods), func(a, b *Pod) int { return podstate.ByCost(&a.State, &b.State) }) {
		if m.Startable() && p.mayTake(m, p.budget, p.update.WaitsToRestart) &&
			p.update.TakeAllowance(&m.State) && p.partition.Take(&m.State) {
			p.take(m)
			next = append(next, m)
		}
	}
	p.update.Plan.MayStart(p.budget.Left())
	left := p.update.Plan.CanWait(steps.DeferStart, steps.BatchWindow, p.Seen.Now)
	if len(next) > 0 && p.sets.AnyAvailableSoon() && left > 0 {
		p.update.Plan.Defer(steps.DeferStart, left)
		return
	}
	for _, m := range next {
		p.startOne(m)
	}
}

// mayTake reports whether a pod that serves may be taken out of service, with that budget. If it is available, it may have to wait for
// others.
func (p *pacer) mayTake(m *Pod, left podstate.Budget, waits func(*podstate.State) bool) bool {
	switch {
	case !m.Serving || !left.Allows(&m.State):
		return false
	case m.Available:
		return !waits(&m.State)
	}
	return p.mayRisk()
}

// take counts the pod as taken out of service.
func (p *pacer) take(m *Pod) {
	p.budget.Take(&m.State)
	p.unproven++
}

// startOne starts a pod, with a drain if it can be drained.
func (p *pacer) startOne(m *Pod) {
	if !m.VolumesFresh(p.update.Plan, p.Seen.Now) {
		return
	}
	m.Turn = true
	if !m.Drains() {
		p.update.Plan.Step(m.Advance(p.sets.New.Rs, false, p.Seen.Now))
		return
	}
	p.update.TakeOut(&m.State, m.Needs().OfContainers().String())
}

// mayRisk reports whether one more pod that is not available may be put on the update revision.
func (p *pacer) mayRisk() bool { return p.unproven < p.maxUnavailable()+p.maxSurge() }

// countUnproven counts the pods on the update revision, or on their way to it, that are not known to work. Natively there are at most
// maxUnavailable + maxSurge: reconcileOldReplicaSets in pkg/controller/deployment/rolling.go. Without this limit, a moment in which all
// old pods are unready would put all of them on a revision that may be broken.
func (p *pacer) countUnproven() int {
	unproven := max(0, p.sets.New.Size()-len(p.sets.New.Pods))
	for _, m := range p.sets.Pods {
		onNewRS := m.Owner == p.sets.New || m.PartiallyPatched() && !m.Restarts()
		if m.Turn || onNewRS && !m.Available {
			unproven++
		}
	}
	return unproven
}
