package deployments

import (
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/steps"
)

// changes are what becomes of the ReplicaSets.
type changes struct {
	marks  Marking
	ledger Ledger
}

// changer decides on the changes, once it is known which pods move.
type changer struct {
	*observed
	pace
	changes
}

// changes returns what becomes of the ReplicaSets when those pods move.
func (o *observed) changes(p pace) changes {
	c := changer{observed: o, pace: p, changes: changes{marks: o.sets.Marking()}}
	c.noteSurge()  // next begins with these notes, and rewrites them where it adds or removes surge pods
	c.noteBypass() // before next, which adds and removes marks: a bypass is noted only on a mark that is stored
	c.next()
	return c.changes
}

// noteSurge keeps the notes on ReplicaSets and the marks on surge pods up to date.
func (c *changer) noteSurge() {
	for _, s := range c.sets.All {
		switch isNew := s == c.sets.New; {
		case isNew && c.surge.givenUp:
		case s.NotesExcessSurge() && !s.Seen(): // the controller may just have created a pod for a replica that was removed
			c.marks[s].Surge = SurgeNote(s.NotedSurge())
		case isNew && s.NotesExcessSurge() && s.Surge == 0 && c.surge.noRoom:
			c.marks[s].Surge = NoSurge
		default:
			c.marks[s].Surge = SurgeNote(s.Surge)
		}
		for _, step := range append(s.markSurgePods(), s.removeFirst()...) {
			c.update.Plan.Step(step)
		}
	}
}

// noteBypass notes on the update revision that another client has scaled.
func (c *changer) noteBypass() {
	if newRS := c.sets.New; newRS != nil && c.marks[newRS].Updating != "" && c.bypass.seen && !c.bypass.known() {
		c.marks[newRS].Bypassed = inplace.FormatTime(c.Seen.Now)
		c.update.Plan.Result.Bypassed = whyBypassed
	}
}

// next takes the next step with the ReplicaSets.
func (c *changer) next() {
	switch {
	case c.sets.New == nil && !c.Deployment.Rolls() && !c.paused():
		c.create()
	case !c.sets.AnyUpdating():
		c.prepare()
	case !c.sets.AllUpdating():
		c.marks.Begin(c.sets, c.Seen.Now)
	default:
		c.movePods()
	}
}

// create creates the new ReplicaSet: with strategy Recreate the native controller would create it only after scaling everything down, which
// is held.
func (c *changer) create() {
	step, reason := NewReplicaSet(c.Deployment, c.ReplicaSets)
	if reason != nil { // Decision has returned it before
		panic(reason.Message)
	}
	c.update.Plan.Step(step)
	c.update.Plan.Phase(steps.PhaseWaiting, "create the new ReplicaSet")
}

// prepare corrects the number of replicas before pods move: the Deployment may have been scaled.
func (c *changer) prepare() {
	plan, replacements := c.update.Plan, c.replacements()
	switch over, wait := c.bypass.over(); {
	case !over:
		c.awaitEndOfBypass(wait)
	case c.sets.Excess() != 0:
		plan.Phase(steps.PhaseScaling, "bring the replicas to what the Deployment wants")
		c.ledger = c.sets.Scale(c.budget().Available)
	case c.sets.New == nil:
		plan.Phase(steps.PhaseWaiting, "the Deployment controller has not created the new ReplicaSet")
	case !c.sets.AllObserved():
		plan.Phase(steps.PhaseWaiting, "the ReplicaSet controller has not caught up")
	case len(replacements) > 0:
		plan.Phase(steps.PhaseScaling, "replace pods on unreachable nodes")
		c.ledger = replacements
	case !c.paused() && c.sets.Unfinished():
		c.marks.Begin(c.sets, c.Seen.Now)
	}
}

func (c *changer) awaitEndOfBypass(wait time.Duration) {
	c.update.Plan.Again(wait)
	c.update.Plan.Phase(steps.PhaseWaiting, whyBypassed)
}

// replacements lower the replicas of ReplicaSets, so that their controllers delete the pods on unreachable nodes, which are not Ready,
// before others. Replacements are created as after any scaling. As natively (reconcileOldReplicaSets in
// pkg/controller/deployment/rolling.go), more pods are replaced when the new ones are available: in an outage of all nodes most pods stay.
//
// If other pods are not Ready, it is not predictable which of them the controller would delete. And a pod on an unreachable node may still
// run: with strategy Recreate no other pod may run at the same time.
func (c *changer) replacements() Ledger {
	if c.paused() || !c.Deployment.Rolls() {
		return nil
	}
	var ledger Ledger
	left := max(1, int(c.Deployment.MaxUnavailable()+c.Deployment.MaxSurge()))
	if newRS := c.sets.New; newRS != nil { // of its pods, those on unreachable nodes do not become available
		left -= max(0, newRS.Size()-newRS.Available()-newRS.ToReplace())
	}
	for _, s := range c.sets.All {
		if unreachable := s.ToReplace(); unreachable == s.Unready() {
			replaced := max(0, min(left, unreachable, s.Size()))
			ledger.Post(s.Rs.Name, -replaced, CauseReplaced)
			left -= replaced
		}
	}
	return ledger
}

// movePods moves the pods that are to leave their ReplicaSets, and corrects replicas so that every pod is counted where it is. Once the
// controllers have seen all of that, it scales, or ends the update.
func (c *changer) movePods() {
	plan, moving := c.update.Plan, false
	surplus := map[*Set]int{}
	for _, s := range c.sets.All {
		surplus[s], moving = s.Surplus(), moving || len(c.leaving[s]) > 0
		c.moveFrom(s)
	}
	(&surger{observed: c.observed, pace: c.Pace}).remove(surplus)
	switch over, wait := c.bypass.over(); {
	case moving || !c.sets.AllObserved():
		plan.Phase(steps.PhaseMoving, "pods change their ReplicaSet")
	case !over:
		c.awaitEndOfBypass(wait)
	case c.sets.Excess() > 0:
		plan.Phase(steps.PhaseScaling, "stop holding deletions, so that pods can be removed")
		c.marks.LetDelete()
	case c.sets.Excess() < 0:
		plan.Phase(steps.PhaseScaling, "add pods")
		c.ledger = append(c.ledger, c.sets.Scale(c.budget().Available)...)
	case len(c.replacements()) > 0:
		plan.Phase(steps.PhaseScaling, "stop holding deletions, so that pods on unreachable nodes can be replaced")
		c.marks.LetDelete()
	default:
		c.exchange()
	}
}

// moveFrom takes the next step for one ReplicaSet: replicas are lowered before pods leave, and raised when pods have come. It does not
// wait until the controller has seen that. Deletions are held meanwhile, and so are pods that the controller would create on an older
// cache (Full).
func (c *changer) moveFrom(s *Set) {
	plan, name, leaving := c.update.Plan, s.Rs.Name, c.leaving[s]
	lowered := min(len(leaving), s.Lowered())
	more, left := toLower(len(leaving), lowered), plan.CanWait(steps.DeferMove, steps.BatchWindow, c.Seen.Now)
	// The leaving pods move to the new ReplicaSet, and for surge pods that are being removed replicas may have been lowered.
	switch stay := len(s.Pods) - len(leaving) - (s.Surplus() - s.Lowered()); {
	case more > 0 && lowered == 0 && c.Soon && left > 0:
		plan.Defer(steps.DeferMove, left)
	case more > 0:
		c.ledger.Post(name, -s.Missing(), CausePassedOn)
		c.ledger.Post(name, -more, CauseMoved)
	case s.Size() < stay:
		c.ledger.Post(name, stay-s.Size(), CauseCounted)
	default:
		for _, m := range leaving[:lowered] {
			plan.Step(m.Advance(c.sets.New.Rs, m.Turn, c.Seen.Now))
		}
	}
}

// As soon as replicas are lowered, the ReplicaSet controller asks for as many deletions, all of them at once, and then waits for the
// answers, which come late (webhook/throttle.go). So where a few pods leave, the first one's replica is lowered alone: the controller waits
// for one answer while the other pods leave. Large workloads are planned too seldom for that (steps.MinInterval).
const fewLeaving, manyLeaving = 3, 32

// toLower returns how many replicas are lowered now, if so many pods are to leave, and replicas were lowered for some of them. What
// replicas were lowered for leaves first: pods that are drained later must not keep those that are drained.
func toLower(leaving, lowered int) int {
	switch {
	case lowered == 0 && fewLeaving <= leaving && leaving <= manyLeaving:
		return 1
	case lowered <= 1:
		return leaving - lowered
	}
	return 0
}

// exchange adds the surge pods that the update needs, and removes those that it does not need. If there is nothing to add or remove, the
// update ends, or waits.
func (c *changer) exchange() {
	c.update.Plan.Again(c.surge.noRoomIn)
	s := surger{observed: c.observed, pace: c.Pace}
	more, replaced, due := s.toAdd(), s.toReplace(), s.toRemove()
	switch newRS := c.sets.New; {
	case more > 0:
		c.ledger.Post(newRS.Rs.Name, more, CauseSurge)
		c.marks[newRS].Surge = SurgeNote(newRS.Surge + more)
		c.update.Plan.Phase(steps.PhaseScaling, "add surge pods")
	case len(replaced) > 0:
		s.replace(replaced)
	case len(due) > 0:
		s.remove(due)
		c.ledger = append(c.ledger, s.ledger...)
		c.giveUpSurge(s.ledger)
	case newRS != nil && !c.sets.Unfinished():
		c.end()
	default:
		c.passOnUncreated()
	}
}

// giveUpSurge notes that there is no room for surge pods, if that is so, with the patch that removes the last surge replica: the pods that
// show it are deleted then.
func (c *changer) giveUpSurge(removed Ledger) {
	if !c.surge.provedNoRoom() {
		return
	}
	if newRS := c.sets.New; removed.Of(newRS.Rs.Name).By() == -newRS.Surge {
		c.marks[newRS].Surge = NoSurge
	}
	c.update.Plan.Phase(steps.PhaseStalled, c.surge.whyNone+"; the update goes on without them")
}

// end ends the update once startup probes have run, pods that went back to their revision have restarted, and the statuses of ReplicaSets
// show that. Before that, a pod counts as available that is not, and without Stayput's marks the Deployment controller would consider its
// rollout complete. A pod that does not start keeps the update in progress until the deadline has passed. A pod that takes long to stop
// keeps it in progress until it has stopped: the Deployment controller does not extend its deadline for that.
func (c *changer) end() {
	if unproved, wait := c.sets.Unproved(c.Seen.Now); unproved && !Overdue(c.Deployment) {
		c.update.Plan.Again(wait)
		return
	}
	var stops time.Time
	for _, s := range c.update.States {
		stops = inplace.Latest(stops, s.Move.StopsBy(s.Pod, c.Seen.Now))
	}
	if c.formula().OutlastsDeadline(stops) {
		c.update.Plan.Again(stops.Sub(c.Seen.Now))
		return
	}
	c.marks.End()
}

// passOnUncreated lets the new ReplicaSet create pods that an old one cannot create: natively, too, a quota is at the expense of the old
// ReplicaSet.
func (c *changer) passOnUncreated() {
	if c.sets.New == nil || c.paused() {
		return
	}
	for _, s := range c.sets.Old() {
		if missing := s.Missing(); s.Failing() && (!c.sets.IsCurrent(s) || missing <= c.sets.BeyondPartition()) {
			c.ledger.Post(s.Rs.Name, -missing, CausePassedOn)
		}
	}
}
