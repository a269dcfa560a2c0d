package deployments

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/revisions"
)

// Marks are the values of Stayput's labels on a ReplicaSet; empty for no label. Nudged is the value of LabelRenewed where the ReplicaSet
// is not updating.
type Marks struct{ Updating, Surge, Bypassed, Current, Nudged string }

// Marking are the marks that the ReplicaSets are to have.
type Marking map[*Set]*Marks

// Marking returns the marks that the ReplicaSets have, except nudges.
func (sets Sets) Marking() Marking {
	marking := Marking{}
	for _, s := range sets.All {
		labels := s.Rs.Labels
		marking[s] = &Marks{Updating: labels[inplace.LabelUpdating], Surge: labels[inplace.LabelSurgeReplicas],
			Bypassed: labels[inplace.LabelBypassed], Current: labels[inplace.LabelCurrent]}
	}
	return marking
}

// Begin marks the new ReplicaSet and all old ones in use as updating, each with the time of the first mark. It also notes which
// ReplicaSets, besides the new one, pods had when the update began. Once that is noted, it adds only a ReplicaSet that gets its first mark
// later: a ReplicaSet that pods have moved to since the update began was marked before, as the new ReplicaSet.
func (m Marking) Begin(sets Sets, now time.Time) {
	began := inplace.FormatTime(now)
	for _, s := range sets.All {
		if m[s].Updating != "" {
			began = strings.TrimSuffix(m[s].Updating, revisions.Scaling)
		}
	}
	known := slices.ContainsFunc(sets.All, func(s *Set) bool { return revisions.IsCurrent(m[s].Current, began) })
	for _, s := range sets.All {
		first := sets.takesPart(s) && m[s].Updating == ""
		if sets.takesPart(s) && !revisions.Updating(s.Rs) {
			m[s].Updating = began
		}
		switch had := s != sets.New && s.InUse(); {
		case had && (!known || first):
			m[s].Current = began
		case !known:
			m[s].Current = ""
		}
	}
}

// LetDelete lets the ReplicaSet controller delete pods of all ReplicaSets.
func (m Marking) LetDelete() {
	for s, marks := range m {
		if revisions.Updating(s.Rs) {
			marks.Updating += revisions.Scaling
		}
	}
}

// End removes the marks of an update that has ended.
func (m Marking) End() {
	for _, marks := range m {
		marks.Updating, marks.Surge = "", ""
	}
}

// Operations returns the operations that give the ReplicaSet these labels. Once the update is over, they remove the note of a bypass and
// the mark of the current revision: a bypass counts no longer, and a partition keeps no pods any more.
func (m Marks) Operations(s *Set) []jsonpatch.Operation {
	if m.Updating == "" {
		m.Bypassed, m.Current = "", ""
	}
	return patches.SetEntries("labels", s.Rs.Labels,
		[2]string{inplace.LabelUpdating, m.Updating}, [2]string{inplace.LabelBypassed, m.Bypassed},
		[2]string{inplace.LabelSurgeReplicas, m.Surge}, [2]string{inplace.LabelCurrent, m.Current})
}

// NoteReplicas returns the operations that note on a marked ReplicaSet how many replicas Stayput gives it.
func (m Marks) NoteReplicas(s *Set, replicas int) []jsonpatch.Operation {
	noted := ""
	if m.Updating != "" {
		noted = strconv.Itoa(replicas)
	}
	return patches.SetEntries("labels", s.Rs.Labels, [2]string{inplace.LabelReplicas, noted})
}

// notedReplicas returns how many replicas Stayput gave the ReplicaSet last, and whether that is known: only a marked ReplicaSet notes it.
func (s *Set) notedReplicas() (int, bool) {
	noted, err := strconv.Atoi(s.Rs.Labels[inplace.LabelReplicas])
	return noted, err == nil && s.Rs.Labels[inplace.LabelUpdating] != ""
}

// Bypassed reports whether the ReplicaSet has another number of replicas than Stayput gave it.
func (s *Set) Bypassed() bool {
	noted, known := s.notedReplicas()
	return known && noted != s.Size()
}

// surged returns how many replicas another client has added.
func (s *Set) surged() int {
	noted, known := s.notedReplicas()
	if !known {
		return 0
	}
	return max(0, s.Size()-noted)
}
