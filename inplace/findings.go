package inplace

import (
	"strings"
)

// Text stands for the rules.
func (r Rules) Text() string { return strings.Join(r.Annotations, "\n") }
