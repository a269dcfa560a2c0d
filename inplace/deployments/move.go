package deployments

import (
	"fmt"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
)

// mark marks the new ReplicaSet and all old ones before anything else changes, each with the time of the first mark.
func (v *Planner) mark() {
	started := v.seconds()
	for _, s := range v.Sets {
		if s.Wanted.Updating != "" {
			started = strings.TrimSuffix(s.Wanted.Updating, revisions.Scaling)
		}
	}
	for _, s := range v.Sets {
		if (s.InUse() || s == v.NewRS) && !revisions.Updating(s.Rs) {
			s.Wanted.Updating = started
		}
	}
	v.Sets.MarkCurrent(v.NewRS, started)
}

// letDelete lets the ReplicaSet controller delete pods of all ReplicaSets.
func (v *Planner) letDelete() {
	for _, s := range v.Sets {
		if revisions.Updating(s.Rs) {
			s.Wanted.Updating += revisions.Scaling
		}
	}
}

// movePods moves the pods that are to leave their ReplicaSets, and corrects replicas so that every pod is counted where it is. Once the
// controllers have seen all of that, it scales, or ends the update.
func (v *Planner) movePods(p pace) {
	moving := false
	for _, s := range v.Sets {
		moving = moving || len(p.leaving[s]) > 0
		v.moveFrom(s, p)
	}
	switch quiet, wait := v.quiet(); {
	case moving || !v.Sets.AllObserved():
		v.plan.Phase(steps.PhaseMoving, "pods change their ReplicaSet")
	case !quiet:
		v.awaitQuiet(wait)
	case v.excess() > 0:
		v.plan.Phase(steps.PhaseScaling, "stop holding deletions, so that pods can be removed")
		v.letDelete()
	case v.excess() < 0:
		v.plan.Phase(steps.PhaseScaling, "add pods")
		v.grow(-v.excess())
	case len(v.withPodsToReplace()) > 0:
		v.plan.Phase(steps.PhaseScaling, "stop holding deletions, so that pods on unreachable nodes can be replaced")
		v.letDelete()
	default:
		v.exchange(p.turns)
	}
}

// exchange adds the surge pods that the update needs, and removes those that it does not need. If there is nothing to add or remove, the
// update ends, or waits.
func (v *Planner) exchange(turns podstate.Turns) {
	_, wait := v.noRoomForSurge()
	v.plan.Again(wait)
	more, due := v.surgeToAdd(), v.surgeToRemove(turns)
	switch {
	case more > 0:
		v.addSurge(more)
	case len(due) > 0:
		v.removeSurge(due, turns)
	case v.NewRS != nil && !v.unfinished():
		v.end()
	default:
		v.passOnUncreated()
	}
}

// end ends the update once startup probes have run and pods that went back to their revision have restarted. Before that, a kubelet may
// report a pod as available that is not, and without Stayput's marks the Deployment controller would consider its rollout complete. A pod
// that does not start keeps the update in progress until the deadline has passed. A pod that takes long to stop keeps it in progress
// until it has stopped: the Deployment controller does not extend its deadline for that.
func (v *Planner) end() {
	if unproved, wait := v.Sets.Unproved(v.seen.Now); unproved && !statuses.Overdue(v.deployment) {
		v.plan.Again(wait)
		return
	}
	if stops := v.stopBy(); v.formula().OutlastsDeadline(stops) {
		v.plan.Again(stops.Sub(v.seen.Now))
		return
	}
	v.Sets.Unmark()
	v.clearSurgeNotes()
}

// moveFrom takes the next step for one ReplicaSet: replicas are lowered before pods leave, and raised when pods have come. It does not
// wait until the controller has seen that. Deletions are held meanwhile, and so are pods that the controller would create on an older
// cache (replicas.Full).
func (v *Planner) moveFrom(s *replicas.Set, p pace) {
	stay, left := s.Staying(len(p.leaving[s])), v.plan.CanWait(steps.DeferMove, steps.BatchWindow, v.seen.Now)
	switch {
	case s.Size() > stay && len(p.leaving[s]) > 0 && p.anySoon && left > 0:
		v.plan.Defer(steps.DeferMove, left)
	case s.Size() > stay && len(p.leaving[s]) > 0:
		v.Post(s, -s.Missing(), replicas.CausePassedOn)
		v.Post(s, stay-s.Size()+s.Missing(), replicas.CauseMoved)
	case s.Size() < stay:
		v.Post(s, stay-s.Size(), replicas.CauseCounted)
	default:
		for _, m := range p.leaving[s] {
			v.plan.Step(m.Advance(v.NewRS.Rs, p.turns[&m.State], v.seen.Now))
		}
	}
}

// passOnUncreated lets the new ReplicaSet create pods that an old one cannot create: natively, too, a quota is at the expense of the old
// ReplicaSet.
func (v *Planner) passOnUncreated() {
	if v.NewRS == nil || v.paused() {
		return
	}
	for _, s := range v.Sets {
		missing := s.Size() - len(s.Pods)
		if s != v.NewRS && missing > 0 && s.Failing() && (!v.Sets.IsCurrent(s) || missing <= v.Sets.BeyondPartition(v.NewRS, v.partitioned)) {
			v.Post(s, -missing, replicas.CausePassedOn)
		}
	}
}

// patchSets writes the changes of the ReplicaSets, each with one patch.
func (v *Planner) patchSets(balance replicas.Balance) {
	for _, s := range v.Sets {
		operations, why := v.changed(s, balance)
		if len(operations) > 0 {
			v.plan.Step(steps.PatchReplicaSet{ReplicaSet: s.Rs, Operations: patches.GuardedButStatus(s.Rs, operations...),
				Why: strings.Join(why, ", ")})
		}
	}
}

func (v *Planner) changed(s *replicas.Set, balance replicas.Balance) (operations []jsonpatch.Operation, why []string) {
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
	if renewal := v.renewal(s); len(renewal) > 0 {
		labels = append(labels, renewal...)
		why = append(why, "renewed")
	}
	if s.Bypassed() {
		why = append(why, "replicas that another client wrote")
	}
	operations = append(operations, labels...)
	if len(why) > 0 {
		operations = append(operations, s.NoteReplicas(becomes)...)
	}
	annotations := v.replicasAnnotations(s, balance)
	if len(annotations) > 0 && (resized || s.Size() > 0 && (v.update.Decided.Held || len(labels) > 0)) {
		operations = append(operations, annotations...)
		why = append(why, "replicas annotations")
	}
	return operations, why
}

// replicasAnnotations is SetReplicasAnnotations. Where the annotations differ from what the Deployment wants, the native controller sees
// a scaling event, and does not even create a new ReplicaSet. There is one scaling event that it must see once it is no longer held: that
// its only active ReplicaSet was lowered for a move that never happened. If the annotation said what the Deployment wants, and the
// Deployment were then scaled to exactly those lowered replicas, the controller would see a scaling event for ever (scale in
// pkg/controller/deployment/sync.go returns before it sets the annotation).
func (v *Planner) replicasAnnotations(s *replicas.Set, balance replicas.Balance) []jsonpatch.Operation {
	wants := apps.Desired(v.deployment)
	before := int(wants)
	if !v.update.Decided.Held && v.Sets.OnlyActive(s, balance) {
		before = s.Becomes(balance)
	}
	return patches.SetEntries("annotations", s.Rs.Annotations,
		[2]string{inplace.AnnotationDesired, strconv.Itoa(before)},
		[2]string{inplace.AnnotationMax, strconv.Itoa(int(wants + v.deployment.MaxSurge()))})
}

// renewal returns the operations that renew the hold on a ReplicaSet, or nudge by it. To be renewed it must be marked, or be about to get a
// mark that is old already because the ReplicaSet joins the update late.
func (v *Planner) renewal(s *replicas.Set) []jsonpatch.Operation {
	renewed, labels := s.Wanted.Nudged, s.Rs.Labels
	if labels[inplace.LabelUpdating] == "" {
		labels = map[string]string{inplace.LabelUpdating: s.Wanted.Updating}
	}
	if s.Wanted.Updating != "" {
		renewed = v.plan.NextRenewal(labels, v.seen.Now)
	}
	return patches.SetEntries("labels", s.Rs.Labels, [2]string{inplace.LabelRenewed, renewed})
}
