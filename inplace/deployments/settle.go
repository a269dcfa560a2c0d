package deployments

import (
	"fmt"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/ledger"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
)

// mark marks the target and all sources before anything else changes; all with the time at which the first one was.
func (v *View) mark() {
	started := v.seconds()
	for _, s := range v.Sets {
		if s.Wish.Settling != "" {
			started = strings.TrimSuffix(s.Wish.Settling, revisions.Scaling)
		}
	}
	for _, s := range v.Sets {
		if (s.InUse() || s == v.Target) && !revisions.Settling(s.Rs) {
			s.Wish.Settling = started
		}
	}
	v.NoteOld(v.Target, started)
}

// letDelete lets the controllers of all ReplicaSets delete pods.
func (v *View) letDelete() {
	for _, s := range v.Sets {
		if revisions.Settling(s.Rs) {
			s.Wish.Settling += revisions.Scaling
		}
	}
}

// settle moves the pods whose turn it is and has everyone count them where they are. Once all is still it scales, or ends.
func (v *View) settle(p pace) {
	moving := false
	for _, s := range v.Sets {
		moving = moving || len(p.leaving[s]) > 0
		v.settleOne(s, p)
	}
	switch steady, wait := v.steady(); {
	case moving || !v.Still():
		v.Phase(steps.PhaseSettling, "pods change their ReplicaSet")
	case !steady:
		v.awaitSteady(wait)
	case v.excess() > 0:
		v.Phase(steps.PhaseScaling, "stop holding deletions, so that pods can be removed")
		v.letDelete()
	case v.excess() < 0:
		v.Phase(steps.PhaseScaling, "add pods")
		v.grow(-v.excess())
	case len(v.withLost()) > 0:
		v.Phase(steps.PhaseScaling, "stop holding deletions, so that pods on nodes that do not answer can be replaced")
		v.letDelete()
	default:
		v.exchange(p.turns)
	}
}

// exchange borrows what the update has use for, and gives back what it has none for. With neither left to do the update ends, or waits.
func (v *View) exchange(turns member.Turns) {
	_, wait := v.inVain()
	v.Again(wait)
	more, due := v.borrowable(), v.due(turns)
	switch {
	case more > 0:
		v.borrow(more)
	case len(due) > 0:
		v.giveBack(due, turns)
	case v.Target != nil && !v.unfinished():
		v.end()
	default:
		v.passOnUncreated()
	}
}

// end ends the update once startup probes have had their turn, and what went back has restarted: before, a kubelet may call a pod available that is not, and without our marks the
// Deployment controller would take its rollout for done. One that does not start keeps the update for as long as there may be progress,
// and one that takes long to stop until it has: the Deployment controller knows nothing of that.
func (v *View) end() {
	if unproved, wait := v.Unproved(v.Now); unproved && !statuses.Overdue(v.Deployment) {
		v.Again(wait)
		return
	}
	if stops := v.stopBy(); v.formula().Outlasts(stops) {
		v.Again(stops.Sub(v.Now))
		return
	}
	v.Unmark()
	v.closeAccount()
}

// settleOne takes the next step for one ReplicaSet: replicas are lowered before pods leave, and raised when pods have come. Nobody waits until its
// controller has seen it. Deletions are held all the while, and so is what it would create on older caches (replicas.Full).
func (v *View) settleOne(s *replicas.Set, p pace) {
	stay, left := s.Staying(len(p.leaving[s])), v.CanWait(steps.PutOffMove, steps.Beat, v.Now)
	switch {
	case s.Size() > stay && len(p.leaving[s]) > 0 && p.anySoon && left > 0:
		v.PutOff(steps.PutOffMove, left)
	case s.Size() > stay && len(p.leaving[s]) > 0:
		v.Post(s, -s.Missing(), ledger.CausePassedOn)
		v.Post(s, stay-s.Size()+s.Missing(), ledger.CauseMoved)
	case s.Size() < stay:
		v.Post(s, stay-s.Size(), ledger.CauseCounted)
	default:
		for _, m := range p.leaving[s] {
			v.Step(m.Advance(v.Target.Rs, p.turns[&m.State], v.Now))
		}
	}
}

// passOnUncreated has the target create the pods that a source cannot: natively, too, it is the old ReplicaSet that gives up
// what a quota keeps from it.
func (v *View) passOnUncreated() {
	if v.Target == nil || v.paused() {
		return
	}
	for _, s := range v.Sets {
		missing := s.Size() - len(s.Pods)
		if s != v.Target && missing > 0 && s.Failing() && (!v.Old(s) || missing <= v.Unkept(v.Target, v.keeps)) {
			v.Post(s, -missing, ledger.CausePassedOn)
		}
	}
}

// patchSets writes what became of the ReplicaSets, each with one patch.
func (v *View) patchSets(balance ledger.Balance) {
	for _, s := range v.Sets {
		operations, why := v.changed(s, balance)
		if len(operations) > 0 {
			v.Step(steps.PatchReplicaSet{ReplicaSet: s.Rs, Operations: patches.GuardedButStatus(s.Rs, operations...), Why: strings.Join(why, ", ")})
		}
	}
}

func (v *View) changed(s *replicas.Set, balance ledger.Balance) (operations []jsonpatch.Operation, why []string) {
	becomes := s.Becomes(balance)
	resized := becomes != s.Size()
	if resized {
		operations = append(operations, jsonpatch.NewOperation("add", "/spec/replicas", int32(becomes)))
		why = append(why, fmt.Sprintf("replicas %d → %d", s.Size(), becomes))
	}
	labels := s.Marks()
	if len(labels) > 0 {
		why = append(why, "marks")
	}
	if signature := v.signature(s); len(signature) > 0 {
		labels = append(labels, signature...)
		why = append(why, "tended")
	}
	if s.Slipped() {
		why = append(why, "somebody else's replicas")
	}
	operations = append(operations, labels...)
	if len(why) > 0 {
		operations = append(operations, s.Giving(becomes)...)
	}
	annotations := v.replicasAnnotations(s, balance)
	if len(annotations) > 0 && (resized || s.Size() > 0 && (v.judged.Held || len(labels) > 0)) {
		operations = append(operations, annotations...)
		why = append(why, "replicas annotations")
	}
	return operations, why
}

// replicasAnnotations is SetReplicasAnnotations: where they differ from what the Deployment wants, the native controller sees a
// scaling event, and does not even create a new ReplicaSet. One that it must see, once it is let to: that its only active
// ReplicaSet was lowered for a move which never came. Did the annotation say what the Deployment wants, and were the Deployment
// then scaled to just those replicas, it would take itself for scaling for ever (scale in pkg/controller/deployment/sync.go
// returns before it sets the annotation).
func (v *View) replicasAnnotations(s *replicas.Set, balance ledger.Balance) []jsonpatch.Operation {
	wants := apps.Desired(v.Deployment)
	before := int(wants)
	if !v.judged.Held && v.OnlyActive(s, balance) {
		before = s.Becomes(balance)
	}
	return patches.SetEntries("annotations", s.Rs.Annotations,
		[2]string{inplace.AnnotationDesired, strconv.Itoa(before)},
		[2]string{inplace.AnnotationMax, strconv.Itoa(int(wants + v.Deployment.MaxSurge()))})
}

// signature signs a ReplicaSet that is marked, or will be with a mark that is old already: it joins late.
func (v *View) signature(s *replicas.Set) []jsonpatch.Operation {
	woken, labels := "", s.Rs.Labels
	if labels[inplace.LabelSettling] == "" {
		labels = map[string]string{inplace.LabelSettling: s.Wish.Settling}
	}
	if s.Wish.Settling != "" {
		woken = v.Tend(labels, v.Now)
	}
	return patches.SetEntries("labels", s.Rs.Labels, [2]string{inplace.LabelWoken, woken})
}
