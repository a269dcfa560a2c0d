package replicas

import (
	"strconv"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// Wanted are the values of Stayput's labels on a ReplicaSet; empty for no label. The replicas are in the ledger. Nudged is the value of
// LabelRenewed where the ReplicaSet is not updating.
type Wanted struct{ Updating, Surge, Bypassed, Current, Nudged string }

// Marks returns the operations that give the ReplicaSet its wanted labels. Once the update is over, they remove the note of a bypass and
// the mark of the current revision: a bypass counts no longer, and a partition keeps no pods any more.
func (s *Set) Marks() []jsonpatch.Operation {
	bypassed, old := s.Wanted.Bypassed, s.Wanted.Current
	if s.Wanted.Updating == "" {
		bypassed, old = "", ""
	}
	return patches.SetEntries("labels", s.Rs.Labels,
		[2]string{inplace.LabelUpdating, s.Wanted.Updating},
		[2]string{inplace.LabelBypassed, bypassed}, [2]string{inplace.LabelSurgeReplicas, s.Wanted.Surge},
		[2]string{inplace.LabelCurrent, old})
}

// NoteReplicas returns the operations that note on a marked ReplicaSet how many replicas Stayput gives it.
func (s *Set) NoteReplicas(replicas int) []jsonpatch.Operation {
	notedReplicas := ""
	if s.Wanted.Updating != "" {
		notedReplicas = strconv.Itoa(replicas)
	}
	return patches.SetEntries("labels", s.Rs.Labels, [2]string{inplace.LabelReplicas, notedReplicas})
}

// notedReplicas returns how many replicas Stayput gave the ReplicaSet last, and whether that is known: only a marked ReplicaSet notes it.
func (s *Set) notedReplicas() (int, bool) {
	notedReplicas, err := strconv.Atoi(s.Rs.Labels[inplace.LabelReplicas])
	return notedReplicas, err == nil && s.Rs.Labels[inplace.LabelUpdating] != ""
}

// Bypassed reports whether the ReplicaSet has another number of replicas than Stayput gave it.
func (s *Set) Bypassed() bool {
	notedReplicas, known := s.notedReplicas()
	return known && notedReplicas != s.Size()
}

// surged returns how many replicas another client has added.
func (s *Set) surged() int {
	notedReplicas, known := s.notedReplicas()
	if !known {
		return 0
	}
	return max(0, s.Size()-notedReplicas)
}
