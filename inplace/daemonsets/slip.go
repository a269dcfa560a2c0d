package daemonsets

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// slips are the first and the last pod that was born in the middle of the update and has no gate: the API server did not ask the webhooks
// about its birth, nor then about the deletion of the one before it. That deletion itself shows nothing, since every user may delete a pod.
// Nil if there are none.
func (v *daemonView) slips() (first, last *daemon) {
	if v.target == nil || !UnderWay(v.target) {
		return nil, nil
	}
	begun := revisions.StartedAt(v.target.Labels[labelUnderWay])
	for _, m := range v.members {
		born := m.Pod.CreationTimestamp
		if forgotten, _ := times.Since(born.Time, member.SlipMemory, v.Now); forgotten || readiness.Gated(m.Pod) || !born.After(begun) {
			continue
		}
		if first == nil || born.Before(&first.Pod.CreationTimestamp) {
			first = m
		}
		if last == nil || last.Pod.CreationTimestamp.Before(&born) {
			last = m
		}
	}
	return first, last
}

// slipsAgain is why the update is given back, if it was not once; nil if it may have been.
func (v *daemonView) slipsAgain() *inplace.Reason {
	first, last := v.slips()
	if first == nil || last.Pod.CreationTimestamp.Sub(first.Pod.CreationTimestamp.Time) <= member.SlipPatience {
		return nil
	}
	return &inplace.Reason{Code: inplace.CodeBypassed,
		Message: "the DaemonSet controller replaces pods although it should be held: the API server does not reach Stayput's webhooks"}
}

// steady tells whether Stayput alone replaces pods, as far as can be told by now, and says what there is to say.
func (v *daemonView) steady() bool {
	_, last := v.slips()
	if last == nil {
		return true
	}
	v.Result.Bypassed = "pod " + last.Pod.Name + " was born without its readiness gate"
	quiet, wait := times.Since(last.Pod.CreationTimestamp.Time, member.SlipPatience, v.Now)
	if !quiet {
		v.Again(wait)
		v.Phase(steps.PhaseWaiting, v.Result.Bypassed)
	}
	return quiet
}
