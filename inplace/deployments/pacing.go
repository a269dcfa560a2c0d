package deployments

import (
	"time"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/steps"
)

// pace is who moves.
type pace struct {
	turns podstate.Turns
	// leaving are the pods that move to the target now, by the ReplicaSet that they leave.
	leaving map[*replicas.Set][]*replicas.Pod
	// reserved is for how many light pods, by the ReplicaSet that they leave, replicas were lowered already.
	reserved map[*replicas.Set]int
	// anySoon: another may move along with those in a moment.
	anySoon bool
	// partition is what the partition leaves.
	partition podstate.PartitionBudget
}

// pace decides whose turn it is, of the pods that lack nothing.
func (v *Planner) pace(blocked podstate.Blocked) pace {
	p := pace{turns: podstate.Turns{}, leaving: map[*replicas.Set][]*replicas.Pod{}, reserved: map[*replicas.Set]int{}, partition: v.partition}
	if v.NewRS == nil {
		return p
	}
	v.keepTurns(&p, blocked)
	inOrder, wait := v.inOrder()
	v.Again(wait)
	open, budget := inOrder && !v.anyRemoving(), v.budget()
	for _, s := range v.Sets {
		v.sendDrained(s, &p)
	}
	for _, s := range v.Sets {
		v.sendNoRestart(s, open, &budget, &p)
	}
	v.finishResizes()
	// Nobody is taken out of service before the marks are stored: if they cannot be, the update is given back.
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

// inOrder reports whether nothing has to be scaled: that comes first, and until it is done only what is half done goes on. If it is only a matter
// of time, of how much.
func (v *Planner) inOrder() (bool, time.Duration) {
	if v.Total()-v.Surge() != v.desired() || !v.AnyUpdating() && !v.Still() || v.unmarkedSurge() {
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

// keepsTurn: a pod whose turn came keeps it until it is patched, or the user pauses or raises the partition, or wants an image that is not on its node yet.
func (v *Planner) keepsTurn(m *replicas.Pod, blocked podstate.Blocked) bool {
	return readiness.Closed(m.Pod) && (m.Removing || blocked.MayStart(&m.State) && !v.paused() && m.Owner != v.NewRS && m.Restarts() && !m.ToReplace && !m.AwaitsCapacity())
}

// sendDrained says which pods of a source are on their way out: those that are drained. Of the light ones, which need no restart, those for which
// replicas were lowered already go, too, whatever has come since.
func (v *Planner) sendDrained(s *replicas.Set, p *pace) {
	if s == v.NewRS {
		return
	}
	for _, m := range s.Pods {
		drain := v.drainState(m, p.turns)
		v.Again(drain.Left)
		switch {
		case !drain.Over || m.Removing:
		case !m.Resizing:
			p.leaving[s] = append(p.leaving[s], m)
		case m.RestartsToResize() && !m.MidResize():
			v.Step(m.Advance(v.NewRS.Rs, true, v.Now))
		}
		p.anySoon = p.anySoon || drain.Soon && !m.Removing
	}
	if v.AnyUpdating() {
		p.reserved[s] = min(max(0, s.Surplus()-len(p.leaving[s])), len(s.NoRestart()))
		for _, m := range s.NoRestart()[:p.reserved[s]] {
			p.partition.Force(&m.State)
		}
	}
}

// sendNoRestart says which light ones follow: those, and more. While such a pod moves, no ReplicaSet counts it: if we died, it would be deleted. So as
// many may be under way as may be unavailable.
func (v *Planner) sendNoRestart(s *replicas.Set, open bool, budget *int, p *pace) {
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

// spare is how many pods may move without a restart although none may be missed: one, as nothing is borrowed for that.
func (v *Planner) spare() int {
	if v.maxUnavailable() == 0 && v.Surge() == 0 {
		return 1
	}
	return 0
}

// startIdle gives pods that must restart their turn where they do not serve anyway.
func (v *Planner) startIdle(p *pace, blocked podstate.Blocked) {
	unproven := v.unproven(p.turns)
	for _, m := range v.Members {
		if !m.Startable(p.turns, blocked) || m.Ready() {
			continue
		}
		if starting, wait := m.Starting(v.Now); starting {
			v.Again(wait)
			continue
		}
		// A pod that never came to run what it has now has nothing to lose: an undo must always get through.
		if (!m.Applied || unproven < v.maxUnavailable()+int(v.Deployment.MaxSurge())) && p.partition.Take(&m.State) {
			unproven++
			v.startOne(m, p.turns)
		}
	}
}

// startAvailable takes as many out of service as may be missed, together with those that somebody who comes back in a moment makes room for.
func (v *Planner) startAvailable(p *pace, blocked podstate.Blocked, budget int) {
	var next []*replicas.Pod
	for _, m := range v.Members {
		if m.Startable(p.turns, blocked) && m.Available && len(next) < budget && p.partition.Take(&m.State) {
			next = append(next, m)
		}
	}
	if left := v.CanWait(steps.DeferStart, steps.BatchWindow, v.Now); len(next) > 0 && replicas.AnyAvailableSoon(v.Members) && left > 0 {
		v.Defer(steps.DeferStart, left)
		return
	}
	for _, m := range next {
		v.startOne(m, p.turns)
	}
}

// startOne drains a pod first that can be drained.
func (v *Planner) startOne(m *replicas.Pod, turns podstate.Turns) {
	if !m.VolumesFresh(&v.PlanBuilder, v.Now) {
		return
	}
	turns[&m.State] = true
	if !m.Drains() {
		v.Step(m.Advance(v.NewRS.Rs, false, v.Now))
		return
	}
	v.Step(podstate.CloseGate(m.Pod, v.Now, m.Needs().OfContainers().String()))
}

// budget is how many more available pods may be missed: those that would stay available if we died now, less those that must.
func (v *Planner) budget() int {
	safe := 0
	for _, s := range v.Sets {
		safe += s.Safe()
	}
	return safe - (v.desired() - v.maxUnavailable())
}

// unproven counts the pods on the new revision, or on their way to it, of which nobody knows yet that they work. Natively no
// more than maxUnavailable + maxSurge are: reconcileOldReplicaSets in pkg/controller/deployment/rolling.go. Without the
// bound a moment in which all old pods are unready would put all of them on a revision that may be broken.
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

// maxUnavailable is how many pods may be missed: what the native controller allows. A percentage that rounds to none is taken for
// one, unless the update borrows; an explicit none borrows, or goes native. Recreate allows its only pod.
func (v *Planner) maxUnavailable() int {
	if v.surging() {
		return 0
	}
	return max(1, int(v.Deployment.MaxUnavailable()))
}
