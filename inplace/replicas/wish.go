package replicas

import (
	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

func (s *Set) Marks() []jsonpatch.Operation {
	slipped := s.Wish.Slipped
	if s.Wish.Settling == "" {
		slipped = ""
	}
	return patches.SetEntries("labels", s.Rs.Labels, [2]string{inplace.LabelSettling, s.Wish.Settling}, [2]string{inplace.LabelReleased, s.Wish.Released},
		[2]string{inplace.LabelSlipped, slipped}, [2]string{inplace.LabelBorrowed, s.Wish.Borrowed})
}

// Wish are the values of our labels on a ReplicaSet; empty for none. Its replicas are the ledger's.
type Wish struct{ Settling, Released, Borrowed, Slipped string }
