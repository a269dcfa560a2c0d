package edit

import (
	"slices"

	"github.com/stayput/stayput/inplace/apps"
)

// clipped returns the change with lists that have no spare capacity. So a caller that appends to a list gets a copy of its own.
func (c Change) clipped() Change {
	c.Containers, c.Labels, c.Annotations = slices.Clip(c.Containers), slices.Clip(c.Labels), slices.Clip(c.Annotations)
	c.Read = ReadKeys{slices.Clip(c.Read.Labels), slices.Clip(c.Read.Annotations)}
	c.Tolerations, c.LostTolerations, c.Reasons = slices.Clip(c.Tolerations), slices.Clip(c.LostTolerations), slices.Clip(c.Reasons)
	return c
}

// comparison is the key of a remembered comparison: two templates without flaws, and the rules.
type comparison struct {
	from, to apps.Digest
	rules    string
}

// sizeOfComparison is the approximate size of a remembered comparison without its rules. It is bounded because reasons are bounded.
const sizeOfComparison = 2 << 10

var (
	ofComparisons apps.Findings[comparison, Change]
)
