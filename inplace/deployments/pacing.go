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

// pace decides which pods have their turn. Blocked pods get none.
func (v *Planner) pace(blocked podstate.Blocked) pace {
	p := pace{turns: podstate.Turns{}, leaving: map[*replicas.Set][]*replicas.Pod{}, reserved: map[*replicas.Set]int{}, partition: v.Partition}
	if v.NewRS == nil {
		return p
	}
	v.keepTurns(&p, blocked)
	inOrder, wait := v.inOrder()
	v.Again(wait)
	open, budget := inOrder && !v.anyRemoving(), v.budget()
	for _, s := range v.Sets {
		v.addDrained(s, &p)
	}
	for _, s := range v.Sets {
		v.addNoRestart(s, open, &budget, &p)
	}
	v.finishResizes()
	// No pod is taken out of service before the marks are stored: if they cannot be, the update falls back.
	if v.paused() || !v.AllUpdating(v.NewRS) {
		return p
	}
	if open || inOrder && v.servesForOthers(budget) {
		v.startIdle(&p, blocked)
	}
	if open {
		v.startResizes(&p, blocked, &budget)
		v.startAvailable(&p, blocked, budget)
	}
	return p
}

// inOrder reports whether nothing has to be scaled. Scaling comes first; until it is done, only what has begun goes on. If that is only a
// matter of time, it returns how long it takes.
func (v *Planner) inOrder() (bool, time.Duration) {
	if v.Total()-v.Surge() != v.desired() || !v.AnyUpdating() && !v.AllObserved() || v.unmarkedSurge() {
		return false, 0
	}
	return v.quiet()
}

func (v *Planner) keepTurns(p *pace, blocked podstate.Blocked) {
	for _, m := range v.Members {
		if v.keepsTurn(m, blocked) && (m.Removing || p.partition.Take(&m.State)) {
			p.turns[&m.State] = true
		}
	}
}

// keepsTurn reports whether the pod has its turn and keeps it: it does until it is patched, unless the user pauses the rollout, raises
// the partition, or wants an image that is not on the pod's node yet.
func (v *Planner) keepsTurn(m *replicas.Pod, blocked podstate.Blocked) bool {
	return readiness.Closed(m.Pod) && (m.Removing || blocked.MayStart(&m.State) && !v.paused() &&
		m.Owner != v.NewRS && m.Restarts() && !m.ToReplace && !m.AwaitsCapacity())
}

// addDrained adds the drained pods of an old ReplicaSet to those that leave it. Of its pods that need no restart, it reserves as many as
// replicas were lowered for: those leave, whatever has happened since.
func (v *Planner) addDrained(s *replicas.Set, p *pace) {
	if s == v.NewRS {
		return
	}
	for _, m := range s.Pods {
		drain := v.DrainState(&m.State, p.turns)
		v.Again(drain.Left)
		switch {
		case !drain.Over || m.Removing:
		case !m.Resizing:
			p.leaving[s] = append(p.leaving[s], m)
		case m.RestartsToResize() && !m.MidResize():
			v.Step(m.Advance(v.NewRS.Rs, true, v.Seen.Now))
		}
		p.anySoon = p.anySoon || drain.Soon && !m.Removing
	}
	if v.AnyUpdating() {
		p.reserved[s] = min(max(0, s.Surplus()-len(p.leaving[s])), len(s.NoRestart()))
		for _, m := range s.NoRestart()[:p.reserved[s]] {
			p.partition.TakeAnyway(&m.State)
		}
	}
}

// addNoRestart adds the pods that need no restart: those that are reserved, and more. While such a pod moves, no ReplicaSet counts it:
// if Stayput died, the pod would be deleted. So only as many move at a time as may be unavailable.
func (v *Planner) addNoRestart(s *replicas.Set, open bool, budget *int, p *pace) {
	if s == v.NewRS {
		return
	}
	for i, m := range s.NoRestart() {
		switch {
		case i < p.reserved[s]:
		case !open || v.paused() && !m.PartiallyPatched():
			continue
		case m.Ready() && *budget <= -v.spare(), !p.partition.Take(&m.State):
			continue
		case m.Ready():
			*budget--
		}
		p.leaving[s] = append(p.leaving[s], m)
	}
}

// spare returns how many pods may move without a restart although none may be unavailable: one, because no surge pod is created for that.
func (v *Planner) spare() int {
	if v.maxUnavailable() == 0 && v.Surge() == 0 {
		return 1
	}
	return 0
}

// startIdle gives pods their turn that must restart and do not serve anyway.
func (v *Planner) startIdle(p *pace, blocked podstate.Blocked) {
	unproven := v.unproven(p.turns)
	for _, m := range v.Members {
		if !m.Startable(p.turns, blocked) || m.Ready() {
			continue
		}
		if starting, wait := m.Starting(v.Seen.Now); starting {
			v.Again(wait)
			continue
		}
		// A pod that has never run what it has now loses nothing by a restart: an undo must always succeed.
		if (!m.Applied || unproven < v.maxUnavailable()+int(v.Deployment.MaxSurge())) && p.partition.Take(&m.State) {
			unproven++
			v.startOne(m, p.turns)
		}
	}
}

// startAvailable takes as many pods out of service as may be unavailable. If a pod becomes available within a batch window, it waits for
// that, so that the pod that may be unavailable instead starts together with them.
func (v *Planner) startAvailable(p *pace, blocked podstate.Blocked, budget int) {
	var next []*replicas.Pod
	for _, m := range v.Members {
		if m.Startable(p.turns, blocked) && m.Available && len(next) < budget && p.partition.Take(&m.State) {
			next = append(next, m)
		}
	}
	if left := v.CanWait(steps.DeferStart, steps.BatchWindow, v.Seen.Now); len(next) > 0 && replicas.AnyAvailableSoon(v.Members) && left > 0 {
		v.Defer(steps.DeferStart, left)
		return
	}
	for _, m := range next {
		v.startOne(m, p.turns)
	}
}

// startOne starts a pod, with a drain if it can be drained.
func (v *Planner) startOne(m *replicas.Pod, turns podstate.Turns) {
	if !m.VolumesFresh(&v.PlanBuilder, v.Seen.Now) {
		return
	}
	turns[&m.State] = true
	if !m.Drains() {
		v.Step(m.Advance(v.NewRS.Rs, false, v.Seen.Now))
		return
	}
	v.Step(podstate.CloseGate(m.Pod, v.Seen.Now, m.Needs().OfContainers().String()))
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
func (v *Planner) unproven(turns podstate.Turns) int {
	unproven := max(0, v.NewRS.Size()-len(v.NewRS.Pods))
	for _, m := range v.Members {
		onNewRS := m.Owner == v.NewRS || m.PartiallyPatched() && !m.Restarts()
		if turns[&m.State] || onNewRS && !m.Available {
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
	return max(1, int(v.Deployment.MaxUnavailable()))
}
