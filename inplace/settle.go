package inplace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
)

// Annotations the Deployment controller keeps on ReplicaSets; pkg/controller/deployment/util/deployment_util.go.
const (
	annotationDesired  = "deployment.kubernetes.io/desired-replicas"
	annotationMax      = "deployment.kubernetes.io/max-replicas"
	annotationRevision = "deployment.kubernetes.io/revision"
)

// mark marks the target and all sources before anything else changes; all with the time at which the first one was.
func (v *view) mark() {
	started := v.seconds()
	for _, s := range v.sets {
		if s.wish.settling != "" {
			started = strings.TrimSuffix(s.wish.settling, scaling)
		}
	}
	for _, s := range v.sets {
		if (s.inUse() || s == v.target) && !Settling(s.rs) {
			s.wish.settling = started
		}
	}
}

func (v *view) unmark() {
	for _, s := range v.sets {
		s.wish.settling = ""
	}
}

// letDelete lets the controllers of all ReplicaSets delete pods.
func (v *view) letDelete() {
	for _, s := range v.sets {
		if Settling(s.rs) {
			s.wish.settling += scaling
		}
	}
}

// settle moves the pods whose turn it is and has everyone count them where they are. Once all is still it scales, or ends.
func (v *view) settle(p pace) {
	moving := false
	for _, s := range v.sets {
		moving = moving || len(p.leaving[s]) > 0
		v.settleOne(s, p)
	}
	switch steady, wait := v.steady(); {
	case moving || !v.still():
		v.phase(PhaseSettling, "pods change their ReplicaSet")
	case !steady:
		v.awaitSteady(wait)
	case v.excess() > 0:
		v.phase(PhaseScaling, "stop holding deletions, so that pods can be removed")
		v.letDelete()
	case v.excess() < 0:
		v.phase(PhaseScaling, "add pods")
		v.grow(-v.excess())
	case len(v.withLost()) > 0:
		v.phase(PhaseScaling, "stop holding deletions, so that pods on nodes that do not answer can be replaced")
		v.letDelete()
	default:
		v.exchange(p.turns)
	}
}

// exchange borrows what the update has use for, and gives back what it has none for. With neither left to do the update ends, or waits.
func (v *view) exchange(turns turns) {
	_, wait := v.inVain()
	v.again(wait)
	more, due := v.borrowable(), v.due(turns)
	switch {
	case more > 0:
		v.borrow(more)
	case len(due) > 0:
		v.giveBack(due, turns)
	case v.target != nil && !v.unfinished():
		v.unmark()
		v.closeAccount()
	default:
		v.passOnUncreated()
	}
}

// settleOne takes the next step for one ReplicaSet. Its controller sees pods and replicas through different watches. So
// replicas are lowered, and seen to be, before pods leave: else a replacement is created; and the pods have been counted, or nothing
// would show that they have left (see counted). And pods that came are seen before replicas are raised: else one too many is created.
// Deletions are held all the while.
func (v *view) settleOne(s *replicaSet, p pace) {
	stay, left := s.staying(len(p.leaving[s])), v.canWait(putOffMove, beat, v.Now)
	switch {
	case s.size() > stay && len(p.leaving[s]) > 0 && p.anySoon && left > 0:
		v.putOff(putOffMove, left)
	case s.size() > stay && len(p.leaving[s]) > 0:
		v.post(s, -s.missing(), CausePassedOn)
		v.post(s, stay-s.size()+s.missing(), CauseMoved)
	case s.size() < stay && v.counted(s):
		v.post(s, stay-s.size(), CauseCounted)
	case s.size() == stay && s.seen():
		for _, m := range p.leaving[s] {
			v.step(m.advance(v.target.rs, p.turns[&m.podState], v.Now))
		}
	}
}

// counted: its controller knows its pods. There is one such controller, with one cache of pods for all ReplicaSets: where those that pods have left
// are counted without them, those that they have come to will be counted with them, whatever their status says yet. But the count of one that
// has a pod born lately says nothing: a replacement that has come hides that another has left.
func (v *view) counted(s *replicaSet) bool {
	unseen := func(other *replicaSet) bool { return other != s && (!other.seen() || other.bornSince(v.target)) }
	return s.seen() || s == v.target && s.observed() && !slices.ContainsFunc(v.sets, unseen)
}

// clockSkew is how far the API server's clock may be from a manager's.
const clockSkew = 10 * time.Second

// bornSince: some pod was created after the update began, or perhaps was.
func (s *replicaSet) bornSince(target *replicaSet) bool {
	began := startedAt(target.rs.Labels[LabelSettling]).Add(-clockSkew)
	return slices.ContainsFunc(s.pods, func(m *member) bool { return !m.pod.CreationTimestamp.Time.Before(began) })
}

// passOnUncreated has the target create the pods that a source cannot: natively, too, it is the old ReplicaSet that gives up
// what a quota keeps from it.
func (v *view) passOnUncreated() {
	if v.target == nil || v.paused() {
		return
	}
	for _, s := range v.sets {
		missing := s.size() - len(s.pods)
		if s != v.target && missing > 0 && s.failing() {
			v.post(s, -missing, CausePassedOn)
		}
	}
}

func (s *replicaSet) failing() bool { return failureOf(s.rs) != nil }

// patchSets writes what became of the ReplicaSets, each with one patch.
func (v *view) patchSets(balance Balance) {
	for _, s := range v.sets {
		operations, why := v.changed(s, balance)
		if len(operations) > 0 {
			v.step(PatchReplicaSet{ReplicaSet: s.rs, Operations: guarded(s.rs, operations...), Why: strings.Join(why, ", ")})
		}
	}
}

func (v *view) changed(s *replicaSet, balance Balance) (operations []jsonpatch.Operation, why []string) {
	becomes := s.becomes(balance)
	resized := becomes != s.size()
	if resized {
		operations = append(operations, jsonpatch.NewOperation("add", "/spec/replicas", int32(becomes)))
		why = append(why, fmt.Sprintf("replicas %d → %d", s.size(), becomes))
	}
	labels := s.marks()
	if len(labels) > 0 {
		why = append(why, "marks")
	}
	if signature := v.signature(s); len(signature) > 0 {
		labels = append(labels, signature...)
		why = append(why, "tended")
	}
	if s.slipped() {
		why = append(why, "somebody else's replicas")
	}
	operations = append(operations, labels...)
	if len(why) > 0 {
		operations = append(operations, s.giving(becomes)...)
	}
	annotations := v.replicasAnnotations(s, balance)
	if len(annotations) > 0 && (resized || s.size() > 0 && (v.judged.Held || len(labels) > 0)) {
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
func (v *view) replicasAnnotations(s *replicaSet, balance Balance) []jsonpatch.Operation {
	wants := desired(v.Deployment)
	before := int(wants)
	if !v.judged.Held && v.onlyActive(s, balance) {
		before = s.becomes(balance)
	}
	return setEntries("annotations", s.rs.Annotations,
		[2]string{annotationDesired, strconv.Itoa(before)},
		[2]string{annotationMax, strconv.Itoa(int(wants + v.Deployment.maxSurge()))})
}

func (v *view) onlyActive(only *replicaSet, balance Balance) bool {
	return !slices.ContainsFunc(v.sets, func(s *replicaSet) bool { return (s.becomes(balance) > 0) != (s == only) })
}

func (s *replicaSet) marks() []jsonpatch.Operation {
	slipped := s.wish.slipped
	if s.wish.settling == "" {
		slipped = ""
	}
	return setEntries("labels", s.rs.Labels, [2]string{LabelSettling, s.wish.settling}, [2]string{LabelReleased, s.wish.released},
		[2]string{LabelSlipped, slipped}, [2]string{LabelBorrowed, s.wish.borrowed})
}

// signature signs a ReplicaSet that is marked, or will be with a mark that is old already: it joins late.
func (v *view) signature(s *replicaSet) []jsonpatch.Operation {
	woken, labels := "", s.rs.Labels
	if labels[LabelSettling] == "" {
		labels = map[string]string{LabelSettling: s.wish.settling}
	}
	if s.wish.settling != "" {
		woken = v.tend(labels, v.Now)
	}
	return setEntries("labels", s.rs.Labels, [2]string{LabelWoken, woken})
}

// giving notes on a marked ReplicaSet which replicas it has from us.
func (s *replicaSet) giving(replicas int) []jsonpatch.Operation {
	given := ""
	if s.wish.settling != "" {
		given = strconv.Itoa(replicas)
	}
	return setEntries("labels", s.rs.Labels, [2]string{LabelReplicas, given})
}
