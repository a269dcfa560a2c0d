package edit

import (
	"slices"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/findings"
)

// clipped has no room behind its lists, so that whoever appends to them gets his own.
func (c Change) clipped() Change {
	c.Containers, c.Labels, c.Annotations = slices.Clip(c.Containers), slices.Clip(c.Labels), slices.Clip(c.Annotations)
	c.Tolerations, c.Displaced, c.Reasons = slices.Clip(c.Tolerations), slices.Clip(c.Displaced), slices.Clip(c.Reasons)
	return c
}

// comparison is of two templates without flaws, by certain rules.
type comparison struct {
	from, to apps.Digest
	rules    string
}

// sizeOfComparison is about what one takes besides its rules: reasons are limited.
const sizeOfComparison = 2 << 10

var (
	ofComparisons findings.Findings[comparison, Change]
)
