package inplace

import (
	"fmt"
	"slices"
	"strings"
)

// Reason is why an update is not made in place.
type Reason struct {
	// Code is the kind of reason, in CamelCase, for events and metrics.
	Code string
	// Path is the JSON pointer to the template field that is the reason; empty if the reason is not a field.
	Path string
	// Message is one clause for users.
	Message string
}

// The codes of the reasons that edit.Compare returns.
const (
	CodeTemplateField   = "TemplateField"   // a field that cannot change in a running pod
	CodeContainers      = "Containers"      // containers or init containers added, removed or reordered
	CodeInitContainer   = "InitContainer"   // the image of an init container that is not a sidecar
	CodeImage           = "Image"           // an empty image
	CodeAnnotation      = "Annotation"      // an annotation that may not change in place
	CodeAnnotationList  = "AnnotationList"  // the workload's list of annotations does not parse, and is ignored
	CodeDownwardAPI     = "DownwardAPI"     // a changed label or annotation that the pod reads through the downward API and cannot read anew
	CodeSchedulingLabel = "SchedulingLabel" // a changed label that the scheduler used to place the pod
	CodeStartupProbe    = "StartupProbe"    // the kubelet would report the container as ready too early, or not restart the sidecar
	CodeRestartPolicy   = "RestartPolicy"   // the container might not start again
	CodeRestart         = "Restart"         // a restart that only new pods can provide
	CodeResources       = "Resources"       // CPU or memory that running pods cannot get, or must not get
)

// Reasons are the reasons that were found, up to MostReasons of them; empty if there are none.
type Reasons []Reason

// MostReasons is how many reasons are kept: a template can differ in as many places as it has bytes. shownReasons is how many String
// shows, since the text is used in annotations, events and admission warnings.
const (
	MostReasons  = 100
	shownReasons = 10
)

// And returns the reasons with those added, up to MostReasons.
func (r Reasons) And(more ...Reason) Reasons {
	return append(r, more[:min(len(more), MostReasons-len(r))]...)
}

// AndShown returns the reasons with one more, in a place where String shows it.
func (r Reasons) AndShown(one Reason) Reasons {
	kept := slices.Clone(r[:min(len(r), MostReasons-1)])
	return slices.Insert(kept, min(len(kept), shownReasons-1), one)
}

// Full reports whether no further reasons are kept.
func (r Reasons) Full() bool { return len(r) >= MostReasons }

// String returns the first ten messages on one line.
func (r Reasons) String() string {
	var messages []string
	for _, reason := range r {
		messages = append(messages, reason.Message)
	}
	return FirstOf(messages, "; ")
}

// FirstOf joins the first ten of the texts, and says how many more there are.
func FirstOf(texts []string, separator string) string {
	shown := slices.Clone(texts[:min(len(texts), shownReasons)])
	if more := len(texts) - shownReasons; more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, separator)
}

// Codes returns the codes, sorted and without duplicates.
func (r Reasons) Codes() []string {
	var codes []string
	for _, reason := range r {
		codes = append(codes, reason.Code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// The codes of the other reasons for which a whole update is native.
const (
	CodeMode           = "Mode"           // the workload is not updated in place, or no longer
	CodeDeleting       = "Deleting"       // the workload is being deleted
	CodeFellBack       = "FellBack"       // the update fell back to the native controller before
	CodeStrategy       = "Strategy"       // strategy Recreate with several replicas, OnDelete, or maxSurge of a DaemonSet
	CodeGroups         = "Groups"         // the pods belong to a LeaderWorkerSet, which recreates whole groups of pods
	CodeOnDelete       = "OnDelete"       // with strategy OnDelete, pods that are not updated in place keep their revision
	CodeMaxUnavailable = "MaxUnavailable" // no pod may be unavailable, and surge pods are turned off
	CodeRevisionGone   = "RevisionGone"   // the ControllerRevision of a pod is gone, so the pod's template is unknown
	CodeClaim          = "Claim"          // a pod of a StatefulSet does not have the volume of a claim template
	CodeHousekeeping   = "Housekeeping"   // the native controller would delete the pod in any case
	CodeRewrittenImage = "RewrittenImage" // a pod has another image than its template
	CodeCannotCreate   = "CannotCreate"   // the new ReplicaSet does not exist, and Stayput cannot create it as the native controller would
	CodeNativeRollout  = "NativeRollout"  // the native controller has begun a rollout with new pods
	CodeBypassed       = "Bypassed"       // writes of the native controller are not held, so it updates the workload at the same time
	CodeUnbalanced     = "Unbalanced"     // a defect of Stayput: the replicas that it would write do not add up, so it does not write them
	CodeTooLarge       = "TooLarge"       // the workload, its revisions or its pods are too large to be read
	CodeNotAdmitted    = "NotAdmitted"    // admission refuses new pods
	CodeRefused        = "Refused"        // the API server refused a write, for example by an admission policy
	CodeNotResized     = "NotResized"     // a node cannot give a pod its CPU and memory
	CodeInjected       = "Injected"       // admission adds to new pods what running pods do not have, or the reverse
	CodeVirtualNode    = "VirtualNode"    // a pod is on a virtual node, which has no kubelet
	CodeFailing        = "Failing"        // writes have failed for too long
	CodeHoldExpired    = "HoldExpired"    // the leader has not renewed the hold
	CodeUninstalled    = "Uninstalled"    // Stayput is being uninstalled
)
