package deployments

import (
	"time"

	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/steps"
)

// pace is who moves.
type pace struct {
	turns member.Turns
	// leaving are the pods that move to the target now, by the ReplicaSet that they leave.
	leaving map[*replicas.Set][]*replicas.Member
	// reserved is for how many light pods, by the ReplicaSet that they leave, replicas were lowered already.
	reserved map[*replicas.Set]int
	// anySoon: another may move along with those in a moment.
	anySoon bool
	// room is what the partition leaves.
	room member.Room
}

// pace decides whose turn it is, of the pods that lack nothing.
func (v *View) pace(lacking member.Lacking) pace {
	p := pace{turns: member.Turns{}, leaving: map[*replicas.Set][]*replicas.Member{}, reserved: map[*replicas.Set]int{}, room: v.room}
	if v.Target == nil {
		return p
	}
	v.keepTurns(&p, lacking)
	inOrder, wait := v.inOrder()
	v.Again(wait)
	open, budget := inOrder && !v.someoneGoes(), v.budget()
	for _, s := range v.Sets {
		v.sendDrained(s, &p)
	}
	for _, s := range v.Sets {
		v.sendLight(s, open, &budget, &p)
	}
	v.finishResizes()
	// Nobody is taken out of service before the marks are stored: if they cannot be, the update is given back.
	if v.paused() || !v.AllSettling(v.Target) {
		return p
	}
	if open || inOrder && v.servesForOthers(budget) {
		v.startIdle(&p, lacking)
	}
	if open {
		v.startResizes(&p, lacking, &budget)
		v.startAvailable(&p, lacking, budget)
	}
	return p
}

// inOrder tells whether nothing has to be scaled: that comes first, and until it is done only what is half done goes on. If it is only a matter
// of time, of how much.
func (v *View) inOrder() (bool, time.Duration) {
	if v.Total()-v.Loan() != v.desired() || !v.Settling() && !v.Still() || v.unlent() {
		return false, 0
	}
	return v.steady()
}

func (v *View) keepTurns(p *pace, lacking member.Lacking) {
	for _, m := range v.Members {
		if v.keepsTurn(m, lacking) && (m.Goes || p.room.Take(&m.State)) {
			p.turns[&m.State] = true
		}
	}
}

// keepsTurn: a pod whose turn came keeps it until it is patched, or the user pauses or raises the partition, or wants an image that is not on its node yet.
func (v *View) keepsTurn(m *replicas.Member, lacking member.Lacking) bool {
	return readiness.Closed(m.Pod) && (m.Goes || lacking.MayStart(&m.State) && !v.paused() && m.Owner != v.Target && m.Restarts() && !m.Lost && !m.AwaitsRoom())
}

// sendDrained says which pods of a source are on their way out: those that are drained. Of the light ones, which need no restart, those for which
// replicas were lowered already go, too, whatever has come since.
func (v *View) sendDrained(s *replicas.Set, p *pace) {
	if s == v.Target {
		return
	}
	for _, m := range s.Pods {
		drain := v.drainage(m, p.turns)
		v.Again(drain.Left)
		switch {
		case !drain.Over || m.Goes:
		case !m.Resizing:
			p.leaving[s] = append(p.leaving[s], m)
		case m.RestartsToResize() && !m.MidResize():
			v.Step(m.Advance(v.Target.Rs, true, v.Now))
		}
		p.anySoon = p.anySoon || drain.Soon && !m.Goes
	}
	if v.Settling() {
		p.reserved[s] = min(max(0, s.Surplus()-len(p.leaving[s])), len(s.Light()))
		for _, m := range s.Light()[:p.reserved[s]] {
			p.room.Force(&m.State)
		}
	}
}

// sendLight says which light ones follow: those, and more. While such a pod moves, no ReplicaSet counts it: if we died, it would be deleted. So as
// many may be under way as may be unavailable.
func (v *View) sendLight(s *replicas.Set, open bool, budget *int, p *pace) {
	if s == v.Target {
		return
	}
	for i, m := range s.Light() {
		switch {
		case i < p.reserved[s]:
		case !open || v.paused() && !m.IsHalfway():
			continue
		case m.Ready() && *budget <= -v.spare(), !p.room.Take(&m.State):
			continue
		case m.Ready():
			*budget--
		}
		p.leaving[s] = append(p.leaving[s], m)
	}
}

// spare is how many pods may move without a restart although none may be missed: one, as nothing is borrowed for that.
func (v *View) spare() int {
	if v.mayMiss() == 0 && v.Loan() == 0 {
		return 1
	}
	return 0
}

// startIdle gives pods that must restart their turn where they do not serve anyway.
func (v *View) startIdle(p *pace, lacking member.Lacking) {
	unproven := v.unproven(p.turns)
	for _, m := range v.Members {
		if !m.Startable(p.turns, lacking) || m.Ready() {
			continue
		}
		if starting, wait := m.Starting(v.Now); starting {
			v.Again(wait)
			continue
		}
		// A pod that never came to run what it has now has nothing to lose: an undo must always get through.
		if (!m.Arrived || unproven < v.mayMiss()+int(v.Deployment.MaxSurge())) && p.room.Take(&m.State) {
			unproven++
			v.startOne(m, p.turns)
		}
	}
}

// startAvailable takes as many out of service as may be missed, together with those that somebody who comes back in a moment makes room for.
func (v *View) startAvailable(p *pace, lacking member.Lacking, budget int) {
	var next []*replicas.Member
	for _, m := range v.Members {
		if m.Startable(p.turns, lacking) && m.Available && len(next) < budget && p.room.Take(&m.State) {
			next = append(next, m)
		}
	}
	if left := v.CanWait(steps.PutOffStart, steps.Beat, v.Now); len(next) > 0 && replicas.AnyComes(v.Members) && left > 0 {
		v.PutOff(steps.PutOffStart, left)
		return
	}
	for _, m := range next {
		v.startOne(m, p.turns)
	}
}

// startOne drains a pod first that can be drained.
func (v *View) startOne(m *replicas.Member, turns member.Turns) {
	if !m.Announced(&v.Draft, v.Now) {
		return
	}
	turns[&m.State] = true
	if !m.Drains() {
		v.Step(m.Advance(v.Target.Rs, false, v.Now))
		return
	}
	v.Step(member.CloseGate(m.Pod, v.Now, m.Needs().OfContainers().String()))
}

// budget is how many more available pods may be missed: those that would stay available if we died now, less those that must.
func (v *View) budget() int {
	safe := 0
	for _, s := range v.Sets {
		safe += s.Safe()
	}
	return safe - (v.desired() - v.mayMiss())
}

// unproven counts the pods on the new revision, or on their way to it, of which nobody knows yet that they work. Natively no
// more than maxUnavailable + maxSurge are: reconcileOldReplicaSets in pkg/controller/deployment/rolling.go. Without the
// bound a moment in which all old pods are unready would put all of them on a revision that may be broken.
func (v *View) unproven(turns member.Turns) int {
	unproven := max(0, v.Target.Size()-len(v.Target.Pods))
	for _, m := range v.Members {
		onTarget := m.Owner == v.Target || m.IsHalfway() && !m.Restarts()
		if turns[&m.State] || onTarget && !m.Available {
			unproven++
		}
	}
	return unproven
}

// mayMiss is how many pods may be missed: what the native controller allows. A percentage that rounds to none is taken for
// one, unless the update borrows; an explicit none borrows, or goes native. Recreate allows its only pod.
func (v *View) mayMiss() int {
	if v.borrowing() {
		return 0
	}
	return max(1, int(v.Deployment.MaxUnavailable()))
}
