package deployments

import (
	"fmt"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/steps"
)

// patcher writes what becomes of the ReplicaSets. Replicas change only by a balance, and there is one only if all changes add up.
type patcher struct {
	*observed
	marks   Marking
	balance Balance
}

// patch changes each ReplicaSet with one patch.
func (p patcher) patch() {
	for _, s := range p.sets.All {
		operations, why := p.changed(s)
		if len(operations) > 0 {
			p.update.Plan.Step(steps.PatchReplicaSet{ReplicaSet: s.Rs, Operations: patches.GuardedButStatus(s.Rs, operations...),
				Why: strings.Join(why, ", ")})
		}
	}
}

func (p patcher) changed(s *Set) (operations []jsonpatch.Operation, why []string) {
	marks, becomes := p.marks[s], s.Becomes(p.balance)
	resized := becomes != s.Size()
	if resized {
		operations = append(operations, jsonpatch.NewOperation("add", "/spec/replicas", int32(becomes)))
		why = append(why, fmt.Sprintf("replicas %d → %d", s.Size(), becomes))
	}
	labels := marks.Operations(s)
	if len(labels) > 0 {
		why = append(why, "marks")
	}
	if renewal := p.renewal(s); len(renewal) > 0 {
		labels = append(labels, renewal...)
		why = append(why, "renewed")
	}
	if s.Bypassed() {
		why = append(why, "replicas that another client wrote")
	}
	operations = append(operations, labels...)
	if len(why) > 0 {
		operations = append(operations, marks.NoteReplicas(s, becomes)...)
	}
	annotations := p.replicasAnnotations(s)
	marked := s.Size() > 0 && (p.update.Decided.Held || len(labels) > 0)
	if len(annotations) > 0 && (resized || marked) {
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
func (p patcher) replicasAnnotations(s *Set) []jsonpatch.Operation {
	wants := apps.Desired(p.Deployment)
	before := int(wants)
	otherwise := func(each *Set) bool { return (each.Becomes(p.balance) > 0) != (each == s) }
	if !p.update.Decided.Held && !p.sets.any(otherwise) { // it will be the only one with replicas
		before = s.Becomes(p.balance)
	}
	return patches.SetEntries("annotations", s.Rs.Annotations,
		[2]string{inplace.AnnotationDesired, strconv.Itoa(before)},
		[2]string{inplace.AnnotationMax, strconv.Itoa(int(wants + p.Deployment.MaxSurge()))})
}

// renewal returns the operations that renew the hold on a ReplicaSet, or nudge by it. To be renewed it must be marked, or be about to get a
// mark that is old already because the ReplicaSet joins the update late.
func (p patcher) renewal(s *Set) []jsonpatch.Operation {
	marks, labels := p.marks[s], s.Rs.Labels
	renewed := marks.Nudged
	if labels[inplace.LabelUpdating] == "" {
		labels = map[string]string{inplace.LabelUpdating: marks.Updating}
	}
	if marks.Updating != "" {
		renewed = p.update.Plan.NextRenewal(labels, p.Seen.Now)
	}
	return patches.SetEntries("labels", s.Rs.Labels, [2]string{inplace.LabelRenewed, renewed})
}
