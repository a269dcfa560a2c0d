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
	// anySoon: another may move along with those in a moment.
	anySoon bool
}

// pace decides whose turn it is, of the pods that lack nothing.
func (v *View) pace(lacking member.Lacking) pace {
	p := pace{turns: member.Turns{}, leaving: map[*replicas.Set][]*replicas.Member{}}
	if v.Target == nil {
		return p
	}
	v.keepTurns(p.turns, lacking)
	inOrder, wait := v.inOrder()
	v.Again(wait)
	open, budget := inOrder && !v.someoneGoes(), v.budget()
	for _, s := range v.Sets {
		if s != v.Target {
			v.sendOff(s, open, &budget, &p)
		}
	}
	v.finishResizes()
	// Nobody is taken out of service before the marks are stored: if they cannot be, the update is given back.
	if v.paused() || !v.allSettling() {
		return p
	}
	if open || inOrder && v.servesForOthers(budget) {
		v.startIdle(p.turns, lacking)
	}
	if open {
		v.startResizes(p.turns, lacking, &budget)
		v.startAvailable(p.turns, lacking, budget)
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

func (v *View) keepTurns(turns member.Turns, lacking member.Lacking) {
	for _, m := range v.Members {
		if v.keepsTurn(m, lacking) {
			turns[&m.State] = true
		}
	}
}

// keepsTurn: a pod whose turn came keeps it until it is patched, or the user pauses, or wants an image that is not on its node yet.
func (v *View) keepsTurn(m *replicas.Member, lacking member.Lacking) bool {
	return readiness.Closed(m.Pod) && (m.Goes || lacking.MayStart(&m.State) && !v.paused() && m.Owner != v.Target && m.Restarts() && !m.Lost)
}

// sendOff says which pods are on their way out: those drained, those that need no restart for which replicas were lowered
// already, and more of the latter. While such a pod moves, no ReplicaSet counts it: if we died, it would be deleted. So as
// many may be under way as may be unavailable.
func (v *View) sendOff(s *replicas.Set, open bool, budget *int, p *pace) {
	for _, m := range s.Pods {
		drain := v.drainage(m, p.turns)
		v.Again(drain.Left)
		if drain.Over && !m.Goes && !m.Resizing {
			p.leaving[s] = append(p.leaving[s], m)
		}
		p.anySoon = p.anySoon || drain.Soon && !m.Goes
	}
	reserved := 0
	if v.Settling() {
		reserved = s.Surplus() - len(p.leaving[s])
	}
	for _, m := range s.Light() {
		switch {
		case reserved > 0:
			reserved--
		case !open || v.paused() && !m.IsHalfway():
			continue
		case m.Ready() && *budget <= -v.spare():
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
func (v *View) startIdle(turns member.Turns, lacking member.Lacking) {
	unproven := v.unproven(turns)
	for _, m := range v.Members {
		if !m.Startable(turns, lacking) || m.Ready() {
			continue
		}
		if starting, wait := m.Starting(v.Now); starting {
			v.Again(wait)
			continue
		}
		// A pod that never came to run what it has now has nothing to lose: an undo must always get through.
		if !m.Arrived || unproven < v.mayMiss()+int(v.Deployment.MaxSurge()) {
			unproven++
			v.startOne(m, turns)
		}
	}
}

// startAvailable takes as many out of service as may be missed, together with those that somebody who comes back in a moment makes room for.
func (v *View) startAvailable(turns member.Turns, lacking member.Lacking, budget int) {
	var next []*replicas.Member
	for _, m := range v.Members {
		if m.Startable(turns, lacking) && m.Available && len(next) < budget {
			next = append(next, m)
		}
	}
	if left := v.CanWait(steps.PutOffStart, steps.Beat, v.Now); len(next) > 0 && replicas.AnyComes(v.Members) && left > 0 {
		v.PutOff(steps.PutOffStart, left)
		return
	}
	for _, m := range next {
		v.startOne(m, turns)
	}
}

// startOne drains a pod first that can be drained.
func (v *View) startOne(m *replicas.Member, turns member.Turns) {
	switch {
	case !m.Announced(&v.Draft, v.Now):
		return
	case !m.Drains():
		v.Step(m.Advance(v.Target.Rs, false, v.Now))
		return
	}
	turns[&m.State] = true
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
