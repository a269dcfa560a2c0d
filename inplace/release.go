package inplace

import "time"

// touchEvery is how often a released target is touched: the Deployment controller drops a key after 15 failures, about 164 s,
// and would look again only after hours; the DaemonSet controller does not even try twice.
const touchEvery = time.Minute

// Release is what gives the update back to the native controller: every gate opened, marks taken off, half-updated pods given
// the images of their ReplicaSet again, and, unless it has all pods already, the target labelled, which ends the hold and wakes
// that controller.
func (r Rollout) Release(why Reason) Plan {
	v := r.view()
	v.verdict = Verdict{Target: v.verdict.Target, Reasons: Reasons{why}}
	v.openAll(v.states(), v.Now, why.Message)
	v.goBack()
	v.unmark()
	v.forget()
	if v.target != nil && v.unfinished() {
		v.target.wish.released = v.seconds()
	}
	v.patchSets()
	v.phase(PhaseNative, why.Message)
	return v.finish()
}

// leave leaves nothing of ours behind where the native controllers update, or have nothing to do.
func (v *view) leave() {
	v.gates()
	v.goBack()
	if v.settling() && v.target != nil && v.unfinished() && !v.Mode.Manages() {
		v.target.wish.released = v.seconds() // a label taken off a namespace wakes nobody
	}
	v.unmark()
	v.forget()
	v.keepReleased()
	v.patchSets()
}

// goBack gives half-updated pods without a gate the images of their ReplicaSet: their labels say no more than that, and if
// the user undid the update now, nobody else would ever notice.
func (v *view) goBack() {
	for _, m := range v.members {
		if len(m.halfway) > 0 && m.rewritten() == nil {
			v.step(m.become(m.owner.rs, m.halfway, v.Now))
		}
	}
}

// keepReleased touches a released target as long as there is something left to do for the native controller, and takes the
// label off one for which that is over.
func (v *view) keepReleased() {
	for _, s := range v.sets {
		if Released(s.rs) {
			s.wish.released = v.touched(s.rs.Labels[LabelReleased], s == v.target && v.unfinished(), v.Now)
		}
	}
}

// touched is the next value of LabelReleased: none when all is done, another one every minute until then.
func (d *draft) touched(value string, unfinished bool, now time.Time) string {
	if !unfinished {
		return ""
	}
	due, wait := since(timeOf(value), touchEvery, now)
	d.again(wait)
	if due {
		return seconds(now)
	}
	return value
}
