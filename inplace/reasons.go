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

// The codes of the reasons edit.Compare gives.
const (
	CodeTemplateField   = "TemplateField"   // a field running pods cannot change
	CodeContainers      = "Containers"      // containers or init containers added, removed or reordered
	CodeInitContainer   = "InitContainer"   // the image of an init container that is no sidecar
	CodeImage           = "Image"           // an image that is empty
	CodeAnnotation      = "Annotation"      // an annotation that is not on the allow-list
	CodeAnnotationList  = "AnnotationList"  // the workload's list of such annotations counts as not there
	CodeDownwardAPI     = "DownwardAPI"     // a changed label or annotation that the pod itself reads
	CodeSchedulingLabel = "SchedulingLabel" // a changed label by which the pod was placed
	CodeStartupProbe    = "StartupProbe"    // the kubelet would report the container ready too early, or not restart the sidecar
	CodeRestartPolicy   = "RestartPolicy"   // the container might not come back
	CodeRestart         = "Restart"         // a restart that only new pods can give
	CodeResources       = "Resources"       // CPU or memory that running pods cannot get, or should not
)

// Reasons are those that were found, the first MostReasons of them; none means none.
type Reasons []Reason

// MostReasons bounds what is kept: a template can differ in as many places as it has bytes. shownReasons bounds what String shows: it
// ends up in annotations, events and admission warnings.
const (
	MostReasons  = 100
	shownReasons = 10
)

// And adds reasons as far as they are kept.
func (r Reasons) And(more ...Reason) Reasons {
	return append(r, more[:min(len(more), MostReasons-len(r))]...)
}

// Full reports whether further reasons would not be kept.
func (r Reasons) Full() bool { return len(r) >= MostReasons }

// String joins the messages on one line, the first ten of them.
func (r Reasons) String() string {
	var messages []string
	for _, reason := range r {
		messages = append(messages, reason.Message)
	}
	return FirstOf(messages, "; ")
}

// FirstOf joins the first ten of the texts.
func FirstOf(texts []string, separator string) string {
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

// Persisted reports whether an update that ends for the reason goes on record. The record ends with us.
func (r Reason) Persisted() bool { return r.Code != CodeUninstalled }

// The codes of the reasons for which a whole update goes native, next to those of edit.Compare.
const (
	CodeMode           = "Mode"           // the workload is not, or no longer, updated in place
	CodeDeleting       = "Deleting"       // the workload is being deleted
	CodeFellBack       = "FellBack"       // the update was given back before
	CodeStrategy       = "Strategy"       // Recreate with several replicas, OnDelete, maxSurge of a DaemonSet
	CodeMaxUnavailable = "MaxUnavailable" // no pod may be unavailable
	CodeRevisionGone   = "RevisionGone"   // nobody knows the template a pod of a DaemonSet was made from
	CodeHousekeeping   = "Housekeeping"   // the native controller would delete the pod anyway
	CodeRewrittenImage = "RewrittenImage" // a pod's image is not the one of its template
	CodeCannotCreate   = "CannotCreate"   // the target is missing and must not be written from our types
	CodeNativeRollout  = "NativeRollout"  // the native controller is at it
	CodeBypassed       = "Bypassed"       // the native controller's writes are not held: it is at it, too
	CodeUnbalanced     = "Unbalanced"     // a defect: the replicas that Stayput would write do not add up, and so are not written
	CodeTooLarge       = "TooLarge"       // what belongs to the workload is too large to be read
	CodeNotAdmitted    = "NotAdmitted"    // a policy refuses new pods
	CodeRefused        = "Refused"        // a policy refused a patch
	CodeNotResized     = "NotResized"     // a node does not give a pod its CPU and memory
	CodeInjected       = "Injected"       // admission gives new pods what running ones have not, or the other way round
	CodeOldKubelet     = "OldKubelet"     // the kubelet of a pod would not restart its sidecar
	CodeFailing        = "Failing"        // writes have failed for too long
	CodeHoldExpired    = "HoldExpired"    // the leader has not looked after it lately
	CodeUninstalled    = "Uninstalled"    // Stayput is leaving
)
