package deployments

import (
	"cmp"
	"slices"
	"time"

	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// pace says which pods move.
type pace struct {
	*engine.Pace
	// leaving are the pods that move to the new ReplicaSet now, by the ReplicaSet that they leave.
	leaving map[*Set][]*Pod
}

// pacer decides which pods move.
type pacer struct {
	*observed
	pace
	// open: pods may begin. idle: those that do not serve may restart although others may not begin.
	open, idle bool
	// unproven counts the pods that are not known to work: see countUnproven.
	unproven int
	// replaceable is how many pods are left whose place surge pods may take.
	replaceable int
	// reserved is for how many pods that need no restart the replicas of the ReplicaSet that they leave have been lowered already.
	reserved map[*Set]int
}

// pacer returns a pacer that has decided nothing yet, but for the turns that pods keep.
func (o *observed) pacer() *pacer {
	p := &pacer{observed: o, reserved: map[*Set]int{}, pace: pace{leaving: map[*Set][]*Pod{}}}
	p.Pace = o.update.Pace(o.budget(), engine.Filter{Name: "Scaling", Guards: engine.Leave, Wait: p.scaling},
		engine.Filter{Name: "Replaced", Guards: engine.Leave, Wait: p.isReplaced, Reserve: p.restartsInstead, Quiet: true},
		engine.Filter{Name: "Unproven", Guards: engine.Leave, Wait: p.risk, Reserve: p.takeRisk})
	p.Spare = o.spare()
	p.keepTurns()
	return p
}

// keepTurns has pods keep their turns. A surge pod that is to be removed keeps it in any case.
func (p *pacer) keepTurns() {
	var moving []*podstate.State
	for _, m := range p.sets.Pods {
		switch {
		case m.Removing:
			m.Turn = readiness.Out(m.Pod)
		case !m.Updated && !m.Surge && !m.ToReplace:
			moving = append(moving, &m.State)
		}
	}
	p.KeepTurns(moving)
}

// decide decides which pods have their turn, and which leave their ReplicaSets.
func (p *pacer) decide() pace {
	if p.sets.New == nil {
		return p.pace
	}
	inOrder, wait := p.inOrder()
	p.update.Plan.Again(wait)
	// No pod begins before the marks are stored: if they cannot be, the update falls back.
	mayBegin := inOrder && p.sets.AllUpdating()
	// Until a surge pod is removed, no other pod that serves has its turn.
	p.open = mayBegin && !p.sets.anyPod(func(m *Pod) bool { return m.Removing })
	p.GoOn(p.pods(func(m *Pod) bool { return !m.Updated && !m.Surge }))
	for _, s := range p.sets.Old() {
		p.reserve(s)
	}
	for _, s := range p.sets.Old() {
		p.addNoRestart(s)
	}
	p.finishResizes()
	// A surge pod that is to be removed may serve until another pod does, which may have to restart for that.
	p.idle = mayBegin && p.removalWaits()
	p.unproven, p.replaceable = p.countUnproven(), len(p.replaceablePods())
	p.Begin(slices.SortedStableFunc(slices.Values(p.pods((*Pod).Begins)), engine.ByCost))
	return p.pace
}

// pods returns those of the pods, as the engine has them go on. Drained pods leave their ReplicaSet, unless they are resized first.
func (p *pacer) pods(those func(*Pod) bool) (pods []engine.Pod) {
	for _, m := range p.sets.Pods {
		if !those(m) {
			continue
		}
		pods = append(pods, engine.Pod{State: &m.State, Of: &m.State, Write: func(drained bool) {
			if drained && !m.Resizing {
				p.leaving[m.Owner] = append(p.leaving[m.Owner], m)
				return
			}
			p.update.Plan.Step(m.Advance(p.sets.New.Rs, drained, p.Seen.Now))
		}})
	}
	return pods
}

// inOrder reports whether nothing has to be scaled. Scaling comes first; until it is done, only what has begun goes on. If that is only a
// matter of time, it returns how long it takes.
func (p *pacer) inOrder() (bool, time.Duration) {
	sets := p.sets
	if sets.Total()-sets.Surge() != p.sets.Wanted || sets.UnmarkedSurge() {
		return false, 0
	}
	return p.bypass.over()
}

// removalWaits reports whether a surge pod that is to be removed serves until another pod does.
func (p *pacer) removalWaits() bool {
	return slices.ContainsFunc(p.sets.Pods, func(m *Pod) bool {
		return m.Removing && m.Available && (p.Budget.Available <= 0 || p.Why(&m.State, engine.Remove) != nil)
	})
}

// reserve reserves, of the pods that need no restart, as many as replicas were lowered for: those leave, whatever has happened since.
func (p *pacer) reserve(s *Set) {
	if p.sets.AnyUpdating() {
		p.reserved[s] = min(max(0, s.Surplus()-len(p.leaving[s])), len(s.NoRestart()))
		for _, m := range s.NoRestart()[:p.reserved[s]] {
			p.Left.TakeAnyway(&m.State)
		}
	}
}

// addNoRestart adds the pods that need no restart: those that are reserved, and more. While such a pod moves, no ReplicaSet counts it:
// if Stayput died, the pod would be deleted. So only as many move at a time as may be unavailable. One that is Ready moves with them, even
// where its kubelet may revoke that.
func (p *pacer) addNoRestart(s *Set) {
	for i, m := range s.NoRestart() {
		left := p.Budget.And(p.Spare)
		switch {
		case i < p.reserved[s]:
		case !p.open || p.paused() && !m.PartiallyPatched():
			continue
		case m.Ready() && left.Serving <= 0, !left.Allows(&m.State), !p.Left.Take(&m.State):
			continue
		default:
			p.Budget.Take(&m.State)
		}
		p.leaving[s] = append(p.leaving[s], m)
	}
}

// spare returns how many pods may move without a restart although none may be unavailable: one, because no surge pod is created for that.
func (o *observed) spare() int {
	if o.maxUnavailable() == 0 && o.sets.Surge() == 0 {
		return 1
	}
	return 0
}

// scaling: replicas are brought to what the Deployment wants, the marks are yet to be stored, or only another pod can take its place.
func (p *pacer) scaling(_ *engine.Pace, s *podstate.State) *steps.Wait {
	if p.open || p.idle && !s.Ready() && !s.ResizesAlive() {
		return nil
	}
	return &steps.Wait{}
}

// risk: enough pods are on the update revision that are not known to work. A pod that has never run what it has now loses nothing by a
// restart: an undo must always succeed.
func (p *pacer) risk(_ *engine.Pace, s *podstate.State) *steps.Wait {
	if s.Available || !s.Applied || s.Turn || p.unproven < p.maxUnavailable()+p.maxSurge() {
		return nil
	}
	return &steps.Wait{}
}

func (p *pacer) takeRisk(_ *engine.Pace, s *podstate.State) {
	if !s.IsCounted() {
		p.unproven++
	}
}

// countUnproven counts the pods on the update revision, or on their way to it, that are not known to work. Natively there are at most
// maxUnavailable + maxSurge: reconcileOldReplicaSets in pkg/controller/deployment/rolling.go. Without this limit, a moment in which all
// old pods are unready would put all of them on a revision that may be broken.
func (p *pacer) countUnproven() int {
	unproven := max(0, p.sets.New.Size()-len(p.sets.New.Pods))
	for _, m := range p.sets.Pods {
		onNewRS := m.Owner == p.sets.New || m.PartiallyPatched() && !m.Restarts()
		if m.Turn || onNewRS && !m.Available {
			unproven++
		}
	}
	return unproven
}

// finishResizes takes back the resizes of pods that go back, and removes the marks of those that were taken back.
func (p *pacer) finishResizes() {
	// Without a deadline, the default one counts, so that an undo always succeeds.
	deadline := cmp.Or(podstate.ResizeDeadline(p.Deployment.Spec.ProgressDeadlineSeconds), podstate.ResizeDeadline(nil))
	for _, m := range p.sets.Pods {
		back, wait := m.IsBack(deadline, p.Seen.Now)
		p.update.Plan.Again(wait)
		if goesBack, _ := m.Move.MayGoBack(nil, m.Pod, p.Seen.Now); m.Updated && readiness.Out(m.Pod) && goesBack {
			continue // it is put back into service first
		}
		if m.Updated && m.MidResize() || back {
			p.update.Plan.Step(m.Advance(p.sets.New.Rs, false, p.Seen.Now))
		}
	}
}
