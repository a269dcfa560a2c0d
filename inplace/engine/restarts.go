package engine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// restarts makes the next steps for pods whose annotations ask for restarts (podstate/request.go). They wait while an update is in
// progress, whichever controller makes it. Pods that do not serve go first. Each container waits until the pod is available after the one
// before.
func (u *Update) restarts(p Planner) {
	requests := u.requests(p)
	if len(requests) == 0 {
		return
	}
	budget, _ := p.Budget()
	pace, pods := &Pace{Update: u, Budget: budget, filters: ofRestarts}, []Pod(nil)
	for _, r := range requests {
		pace.KeepTurns([]*podstate.State{r.Next})
		r.Pod.Turn = r.Next.Turn
		if r.Next.Turn || r.Pod.Available || !r.Begun() {
			write := func(drained bool) { u.Plan.Step(r.Restart(drained, u.seen.Now)) }
			pods = append(pods, Pod{State: r.Next, Of: r.Pod, Why: r.Why(), Write: write})
		}
	}
	slices.SortStableFunc(pods, ByCost)
	pace.Begin(pace.GoOn(pods))
	u.Plan.Result.OnRequest = slices.ContainsFunc(pods, func(each Pod) bool { return each.Turn })
}

// requests returns the requests that can be met now, in the order of the pods.
func (u *Update) requests(p Planner) []podstate.Asking {
	asking := u.asking()
	if len(asking) == 0 {
		return nil
	}
	c := u.circumstances(p)
	return slices.DeleteFunc(asking, func(a podstate.Asking) bool { return !a.MayBegin(c) || a.StopsNow() || !u.Reachable(a.Pod.Pod) })
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
