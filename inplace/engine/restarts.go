package engine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// restarts makes the next steps for pods whose annotations ask for restarts (podstate/request.go). They wait while an update is in progress, whichever controller makes it. Pods that do not serve go first.
func (u *Update) restarts(p Planner) {
	requests := u.requests(p)
	if len(requests) == 0 {
		return
	}
	budget, _ := p.Budget()
	slices.SortStableFunc(requests, func(a, b podstate.Asking) int { return podstate.ByCost(a.Pod, b.Pod) })
	for _, r := range requests {
		if budget.Allows(r.Pod) && u.restart(r) {
			budget.Take(r.Pod)
		}
	}
	u.Plan.MayStart(budget.Left())
}

// requests returns the requests that can be met now, in the order of the pods.
func (u *Update) requests(p Planner) []podstate.Asking {
	asking := u.asking()
	if len(asking) == 0 {
		return nil
	}
	c := u.circumstances(p)
	return slices.DeleteFunc(asking, func(a podstate.Asking) bool { return !a.MayBegin(c) })
}

// asking returns the pods with requests that Stayput answers, and with answers to take back.
func (u *Update) asking() []podstate.Asking {
	var all []podstate.Asking
	for _, s := range u.States {
		if podstate.MayAnswer(s.Pod, u.seen.Mode) {
			all = append(all, podstate.AskingOf(s))
		}
	}
	return all
}

// circumstances returns what decides, besides the pods themselves, what becomes of their requests.
func (u *Update) circumstances(p Planner) podstate.Circumstances {
	c := podstate.Circumstances{Rules: u.seen.Rules, Nodes: u.NodesByName, Now: u.seen.Now, Unmanaged: u.seen.Unmanaged(u.Workload)}
	if u.Decided.Held || u.Decided.Native() {
		c.Update = "an update of the " + u.Workload.Kind
	} else {
		_, c.Never = p.Budget()
	}
	if reasons := u.Decided.Reasons; len(reasons) > 0 && reasons[0].Code == inplace.CodeUninstalled { // nothing answers later
		c.Unmanaged = &reasons[0]
	}
	return c
}

// answerRequests has pods say what becomes of their requests. A pod with another step says so later: both writes name its version.
func (u *Update) answerRequests(p Planner) {
	asking := u.asking()
	if len(asking) == 0 {
		return
	}
	c := u.circumstances(p)
	for _, a := range asking {
		if u.writes(a.Pod.Pod) {
			continue
		}
		if step, has := a.Answer(c); has {
			u.Plan.Step(step)
		} else if !a.Deadline.IsZero() {
			u.Plan.Again(max(0, a.Deadline.Sub(u.seen.Now)))
		}
	}
}

// writes reports whether the plan has a step for the pod.
func (u *Update) writes(pod *corev1.Pod) bool {
	return slices.ContainsFunc(u.Plan.Result.Steps, func(step steps.Step) bool {
		switch s := step.(type) {
		case steps.PatchPod:
			return s.Pod == pod
		case steps.SetReady:
			return s.Pod == pod
		}
		return false
	})
}

// restart makes the pod's next step, and reports whether the pod counts as taken out of service.
func (u *Update) restart(r podstate.Asking) bool {
	starting, grownIn := r.Pod.Starting(u.seen.Now)
	switch {
	case !u.Reachable(r.Pod.Pod), r.StopsNow(), r.Next.Postponed() != "":
		return false
	case readiness.Out(r.Pod.Pod):
		u.drain(r)
		return false
	case starting:
		u.Plan.Again(grownIn)
		return false
	case r.Begun() && !r.Pod.Available, r.Pod.Serving && !u.TakeAllowance(r.Pod):
		return false
	case r.Next.VolumesFresh(u.Plan, u.seen.Now):
		u.start(r)
	}
	return true
}

// start takes the pod out of service first if it can be drained.
func (u *Update) start(r podstate.Asking) {
	u.Plan.Result.OnRequest = true
	r.Next.StaysIn = r.Pod.StaysIn
	if !r.Next.Drains() {
		u.Plan.Step(r.Restart(false, u.seen.Now))
		return
	}
	r.Pod.Turn = true
	u.Plan.Step(r.TakeOut(u.drainTakes(), u.seen.Now))
	u.leaves(r.Pod)
}

// drain has the pod keep its turn, and restarts the container once the drain is over.
func (u *Update) drain(r podstate.Asking) {
	r.Pod.Turn, r.Next.Turn = true, true
	drain := u.DrainState(r.Next)
	u.Plan.Again(drain.Left)
	if drain.Over {
		u.Plan.Result.OnRequest = true
		u.Plan.Step(r.Restart(true, u.seen.Now))
	}
}
