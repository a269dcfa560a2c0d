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

// Reasons are all reasons that were found; none means none.
type Reasons []Reason

// shownReasons bounds what String shows: it ends up in annotations, events and admission warnings.
const shownReasons = 10

// String joins the messages on one line, the first ten of them.
func (r Reasons) String() string {
	var messages []string
	for _, reason := range r[:min(len(r), shownReasons)] {
		messages = append(messages, reason.Message)
	}
	if more := len(r) - shownReasons; more > 0 {
		messages = append(messages, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(messages, "; ")
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
