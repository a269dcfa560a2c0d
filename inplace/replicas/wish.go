package replicas

import (
	"strconv"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// Wanted are the values of our labels on a ReplicaSet; empty for none. Its replicas are the ledger's.
type Wanted struct{ Updating, Fallback, Surge, Bypassed, Current string }

// Marks returns the operations that give the ReplicaSet the labels it shall have. A slip is held against nobody once the update is over, and nobody
// is kept then.
func (s *Set) Marks() []jsonpatch.Operation {
	bypassed, old := s.Wanted.Bypassed, s.Wanted.Current
	if s.Wanted.Updating == "" {
		bypassed, old = "", ""
	}
	return patches.SetEntries("labels", s.Rs.Labels, [2]string{inplace.LabelUpdating, s.Wanted.Updating}, [2]string{inplace.LabelFallback, s.Wanted.Fallback},
		[2]string{inplace.LabelBypassed, bypassed}, [2]string{inplace.LabelSurgeReplicas, s.Wanted.Surge},
		[2]string{inplace.LabelCurrent, old})
}

// Giving notes on a marked ReplicaSet which replicas it has from us.
func (s *Set) Giving(replicas int) []jsonpatch.Operation {
	given := ""
	if s.Wanted.Updating != "" {
		given = strconv.Itoa(replicas)
	}
	return patches.SetEntries("labels", s.Rs.Labels, [2]string{inplace.LabelReplicas, given})
}

// given is how many replicas the ReplicaSet had from us, if it is marked.
func (s *Set) given() (int, bool) {
	given, err := strconv.Atoi(s.Rs.Labels[inplace.LabelReplicas])
	return given, err == nil && s.Rs.Labels[inplace.LabelUpdating] != ""
}

// Bypassed reports whether the replicas are others than we gave it.
func (s *Set) Bypassed() bool {
	given, known := s.given()
	return known && given != s.Size()
}

// surged is how many replicas somebody else has added.
func (s *Set) surged() int {
	given, known := s.given()
	if !known {
		return 0
	}
	return max(0, s.Size()-given)
}
