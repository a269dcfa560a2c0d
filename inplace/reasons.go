package inplace

import (
	"fmt"
	"slices"
	"strings"
)

// Reason says why an update is not made in place.
type Reason struct {
	// Code is the kind of reason, in CamelCase, for events and metrics.
	Code string
	// Path is the JSON pointer to the template field at fault; empty if it is not a field.
	Path string
	// Message is one clause for people.
	Message string
}

// The codes of the reasons Compare gives.
const (
	CodeTemplateField   = "TemplateField"   // a field running pods cannot change
	CodeContainers      = "Containers"      // containers added, removed or reordered
	CodeInitContainer   = "InitContainer"   // the image of an init container or sidecar
	CodeImage           = "Image"           // an image that is empty
	CodeAnnotation      = "Annotation"      // an annotation that is not on the allow-list
	CodeDownwardAPI     = "DownwardAPI"     // a changed label or annotation that the pod itself reads
	CodeSchedulingLabel = "SchedulingLabel" // a changed label by which the pod was placed
	CodeStartupProbe    = "StartupProbe"    // the kubelet would report the container ready too early
	CodeRestartPolicy   = "RestartPolicy"   // the container might not come back
)

// Reasons are those that were found, the first mostReasons of them; none means none.
type Reasons []Reason

// mostReasons bounds what is kept: a template can differ in as many places as it has bytes. shownReasons bounds what String shows: it
// ends up in annotations, events and admission warnings.
const (
	mostReasons  = 100
	shownReasons = 10
)

// and adds reasons as far as they are kept.
func (r Reasons) and(more ...Reason) Reasons {
	return append(r, more[:min(len(more), mostReasons-len(r))]...)
}

// full tells whether further reasons would not be kept.
func (r Reasons) full() bool { return len(r) >= mostReasons }

// String joins the messages on one line, the first ten of them.
func (r Reasons) String() string {
	var messages []string
	for _, reason := range r {
		messages = append(messages, reason.Message)
	}
	return firstOf(messages, "; ")
}

// firstOf joins the first ten of the texts.
func firstOf(texts []string, separator string) string {
	shown := slices.Clone(texts[:min(len(texts), shownReasons)])
	if more := len(texts) - shownReasons; more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, separator)
}

// Codes returns the codes, sorted and each once.
func (r Reasons) Codes() []string {
	var codes []string
	for _, reason := range r {
		codes = append(codes, reason.Code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}
