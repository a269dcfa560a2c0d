package inplace

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// turns are the pods whose gates are closed because they are to be patched next, or to go.
type turns map[*podState]bool

// pace is who moves.
type pace struct {
	turns turns
	// leaving are the pods that move to the target now, by the ReplicaSet that they leave.
	leaving map[*replicaSet][]*member
	// anySoon: another may move along with those in a moment.
	anySoon bool
}

// pace decides whose turn it is, of the pods that lack nothing.
func (v *view) pace(lacking lacking) pace {
	p := pace{turns: turns{}, leaving: map[*replicaSet][]*member{}}
	if v.target == nil {
		return p
	}
	v.keepTurns(p.turns, lacking)
	inOrder, wait := v.inOrder()
	v.again(wait)
	open, budget := inOrder && !v.someoneGoes(), v.budget()
	for _, s := range v.sets {
		if s != v.target {
			v.sendOff(s, open, &budget, &p)
		}
	}
	// Nobody is taken out of service before the marks are stored: if they cannot be, the update is given back.
	if v.paused() || !v.allSettling() {
		return p
	}
	if open || inOrder && v.servesForOthers(budget) {
		v.startIdle(p.turns, lacking)
	}
	if open {
		v.startAvailable(p.turns, lacking, budget)
	}
	return p
}

// inOrder tells whether nothing has to be scaled: that comes first, and until it is done only what is half done goes on. If it is only a matter
// of time, of how much.
func (v *view) inOrder() (bool, time.Duration) {
	if v.total()-v.loan() != v.desired() || !v.settling() && !v.still() || v.unlent() {
		return false, 0
	}
	return v.steady()
}

func (v *view) keepTurns(turns turns, lacking lacking) {
	for _, m := range v.members {
		if v.keepsTurn(m, lacking) {
			turns[&m.podState] = true
		}
	}
}

// keepsTurn: a pod whose turn came keeps it until it is patched, or the user pauses, or wants an image that is not on its node yet.
func (v *view) keepsTurn(m *member, lacking lacking) bool {
	return Closed(m.pod) && (m.goes || lacking.mayStart(&m.podState) && !v.paused() && m.owner != v.target && m.restarts() && !m.lost)
}

// sendOff says which pods are on their way out: those drained, those that need no restart for which replicas were lowered
// already, and more of the latter. While such a pod moves, no ReplicaSet counts it: if we died, it would be deleted. So as
// many may be under way as may be unavailable.
func (v *view) sendOff(s *replicaSet, open bool, budget *int, p *pace) {
	for _, m := range s.pods {
		drain := v.drainage(m, p.turns)
		v.again(drain.left)
		if drain.over && !m.goes {
			p.leaving[s] = append(p.leaving[s], m)
		}
		p.anySoon = p.anySoon || drain.soon && !m.goes
	}
	reserved := 0
	if v.settling() {
		reserved = s.surplus() - len(p.leaving[s])
	}
	for _, m := range s.light() {
		switch {
		case reserved > 0:
			reserved--
		case !open || v.paused() && !m.isHalfway():
			continue
		case m.ready() && *budget <= -v.spare():
			continue
		case m.ready():
			*budget--
		}
		p.leaving[s] = append(p.leaving[s], m)
	}
}

// spare is how many pods may move without a restart although none may be missed: one, as nothing is borrowed for that.
func (v *view) spare() int {
	if v.mayMiss() == 0 && v.loan() == 0 {
		return 1
	}
	return 0
}

// light are the pods that could move without a restart: only labels change, or their containers are the target's already. Those that
// do not serve come first: replicas lowered for one of them must not be taken for another's.
func (s *replicaSet) light() []*member {
	var idle, serving []*member
	for _, m := range s.pods {
		switch {
		case m.borrowed || !m.light():
		case m.ready():
			serving = append(serving, m)
		default:
			idle = append(idle, m)
		}
	}
	return append(idle, serving...)
}

// startIdle gives pods that must restart their turn where they do not serve anyway.
func (v *view) startIdle(turns turns, lacking lacking) {
	unproven := v.unproven(turns)
	for _, m := range v.members {
		if !m.startable(turns, lacking) || m.ready() {
			continue
		}
		if starting, wait := m.starting(v.Now); starting {
			v.again(wait)
			continue
		}
		// A pod that never came to run what it has now has nothing to lose: an undo must always get through.
		if !m.arrived || unproven < v.mayMiss()+int(v.Deployment.maxSurge()) {
			unproven++
			v.startOne(m, turns)
		}
	}
}

// startAvailable takes as many out of service as may be missed, together with those that somebody who comes back in a moment makes room for.
func (v *view) startAvailable(turns turns, lacking lacking, budget int) {
	var next []*member
	for _, m := range v.members {
		if m.startable(turns, lacking) && m.available && len(next) < budget {
			next = append(next, m)
		}
	}
	if left := v.canWait(putOffStart, beat, v.Now); len(next) > 0 && v.anyComes() && left > 0 {
		v.putOff(putOffStart, left)
		return
	}
	for _, m := range next {
		v.startOne(m, turns)
	}
}

// anyComes: a pod will be available within a beat.
func (v *view) anyComes() bool {
	return slices.ContainsFunc(v.members, func(m *member) bool { return 0 < m.comes && m.comes <= beat })
}

// startable: nothing but the budget keeps the pod from its turn.
func (m *member) startable(turns turns, lacking lacking) bool {
	return lacking.mayStart(&m.podState) && m.toRestart() && !turns[&m.podState] && !m.lost
}

// startOne drains a pod first that can be drained.
func (v *view) startOne(m *member, turns turns) {
	if !m.drains() {
		v.step(m.advance(v.target.rs, false, v.Now))
		return
	}
	turns[&m.podState] = true
	v.step(closeGate(m.pod, v.Now, m.needs.OfContainers().String()))
}

// budget is how many more available pods may be missed: those that would stay available if we died now, less those that must.
func (v *view) budget() int {
	safe := 0
	for _, s := range v.sets {
		safe += s.safe()
	}
	return safe - (v.desired() - v.mayMiss())
}

// unproven counts the pods on the new revision, or on their way to it, of which nobody knows yet that they work. Natively no
// more than maxUnavailable + maxSurge are: reconcileOldReplicaSets in pkg/controller/deployment/rolling.go. Without the
// bound a moment in which all old pods are unready would put all of them on a revision that may be broken.
func (v *view) unproven(turns turns) int {
	unproven := max(0, v.target.size()-len(v.target.pods))
	for _, m := range v.members {
		onTarget := m.owner == v.target || m.isHalfway() && !m.restarts()
		if turns[&m.podState] || onTarget && !m.available {
			unproven++
		}
	}
	return unproven
}

// mayMiss is how many pods may be missed: what the native controller allows. A percentage that rounds to none is taken for
// one, unless the update borrows; an explicit none borrows, or goes native. Recreate allows its only pod.
func (v *view) mayMiss() int {
	if v.borrowing() {
		return 0
	}
	return max(1, int(v.Deployment.maxUnavailable()))
}

// explicitZero tells whether the user wrote that no pod may be missed.
func explicitZero(d *Deployment) bool {
	rolling := d.Spec.Strategy.RollingUpdate
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType || rolling == nil || rolling.MaxUnavailable == nil {
		return false
	}
	ofHundred, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, 100, true)
	return err == nil && ofHundred == 0
}

// maxUnavailable and maxSurge are MaxUnavailable and MaxSurge of pkg/controller/deployment/util/deployment_util.go.
func (d *Deployment) maxUnavailable() int32 {
	if !d.rolls() || desired(d) == 0 {
		return 0
	}
	_, unavailable := d.fenceposts()
	return min(unavailable, desired(d))
}

func (d *Deployment) maxSurge() int32 {
	if !d.rolls() {
		return 0
	}
	surge, _ := d.fenceposts()
	return surge
}

func (d *Deployment) rolls() bool {
	return d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
}

// fenceposts is ResolveFenceposts there. Values that do not parse were rejected by the API server; they count as 0.
func (d *Deployment) fenceposts() (surge, unavailable int32) {
	var rolling appsv1.RollingUpdateDeployment
	if d.Spec.Strategy.RollingUpdate != nil {
		rolling = *d.Spec.Strategy.RollingUpdate
	}
	surge = scaled(rolling.MaxSurge, desired(d), true)
	unavailable = scaled(rolling.MaxUnavailable, desired(d), false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func scaled(value *intstr.IntOrString, of int32, up bool) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(value, intstr.FromInt32(0)), int(of), up)
	if err != nil {
		return 0
	}
	return int32(n)
}
