package engine

import (
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// request is a pod whose annotation asks for restarts.
type request struct {
	podstate.Request
	pod *podstate.State
	// asked is the pod as one whose next container has yet to restart.
	asked *podstate.State
}

// restarts makes the next steps for pods whose annotations ask for restarts (podstate/request.go), and returns those that have their turn.
// They wait while an update is in progress, whichever controller makes it. Pods that do not serve go first and cost no budget.
func (u *Update) restarts(p Planner) podstate.Turns {
	turns, requests := podstate.Turns{}, u.requests()
	if len(requests) == 0 {
		return turns
	}
	budget, never := p.Budget()
	for _, serving := range []bool{false, true} {
		for _, r := range requests {
			switch {
			case r.pod.Available != serving:
			case serving && never != "":
				u.Plan.Step(r.pod.RefuseRequest(r.Request, never))
			case serving && budget <= 0:
			case u.restart(r, turns) && serving:
				budget--
			}
		}
	}
	u.Plan.MayStart(budget)
	return turns
}

// requests returns the requests that can be met, in the order of the pods, and refuses the others.
func (u *Update) requests() []request {
	if u.Decided.Native() || u.seen.Unmanaged(u.Workload) != nil {
		return nil
	}
	var all []request
	for s := range u.Pods() {
		asked, has := podstate.RequestOf(s.Pod)
		if !has {
			continue
		}
		if why := u.whyRefused(s, asked); why != "" {
			if !readiness.Closed(s.Pod) { // otherwise the gate opens first
				u.Plan.Step(s.RefuseRequest(asked, why))
			}
			continue
		}
		if !asked.Deadline.IsZero() {
			u.Plan.Again(asked.Deadline.Sub(u.seen.Now))
		}
		all = append(all, request{Request: asked, pod: s, asked: s.AskedBy(asked)})
	}
	return all
}

func (u *Update) whyRefused(s *podstate.State, r podstate.Request) string {
	if why := s.WhyRefused(r, u.seen.Rules, u.seen.Now); why != "" {
		return why
	}
	if reason := podstate.CannotRestart(u.NodesByName[s.Pod.Spec.NodeName], s.Pod, s.AskedBy(r).Containers); reason != nil {
		return reason.Message
	}
	return ""
}

// restart makes the pod's next step, and reports whether the pod uses up the budget, if it serves.
func (u *Update) restart(r request, turns podstate.Turns) bool {
	starting, grownIn := r.pod.Starting(u.seen.Now)
	switch {
	case !u.Reachable(r.pod.Pod), r.pod.StopsNow(), r.asked.Postponed() != "":
		return false
	case readiness.Closed(r.pod.Pod):
		u.drain(r, turns)
		return false
	case starting:
		u.Plan.Again(grownIn)
		return false
	case r.Begun() && !r.pod.Available, r.pod.Available && !u.TakeAllowance(r.pod):
		return false
	case r.asked.VolumesFresh(u.Plan, u.seen.Now):
		u.start(r, turns)
	}
	return true
}

// start takes the pod out of service first if it can be drained.
func (u *Update) start(r request, turns podstate.Turns) {
	u.Plan.Result.OnRequest = true
	if !r.asked.Drains() {
		u.Plan.Step(r.asked.Restart(r.Request, false, u.seen.Now))
		return
	}
	turns[r.pod] = true
	u.Plan.Step(podstate.CloseGate(r.pod.Pod, u.seen.Now, "restart "+r.Container()+", as its annotation asks"))
}

// drain has the pod keep its turn, and restarts the container once the drain is over.
func (u *Update) drain(r request, turns podstate.Turns) {
	turns[r.pod] = true
	drain := u.DrainState(r.asked, podstate.Turns{r.asked: true})
	u.Plan.Again(drain.Left)
	if drain.Over {
		u.Plan.Result.OnRequest = true
		u.Plan.Step(r.asked.Restart(r.Request, true, u.seen.Now))
	}
}
