package steps

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/patches"
)

// EditDecision is what the edit of a workload's template will do.
type EditDecision struct {
	Change edit.Change
	// Reasons are why the edit is not made in place; none if it is.
	Reasons inplace.Reasons
	// Forbidden: the mode does not allow the edit to be made natively.
	Forbidden bool
	// Partition is the workload's partition.
	Partition inplace.Partition
	// Undo: the edit takes back, in the middle of an update, what that update changes.
	Undo bool
	// Deadline is one line about a drain and stop of a pod that take longer than the workload's deadline; empty if they do not.
	Deadline string
	// Autoscaler is one line about an autoscaler that mistakes the start of containers for load; empty if no autoscaler does, or Stayput did
	// not look for one.
	Autoscaler string
	// Hooks is one line about pre-restart hooks that pods wait for, or do not; empty if there are none.
	Hooks string
	// Duration is one line about how long the update takes; empty if that is unknown, or if it takes seconds.
	Duration string
	// Budget is one line about a PodDisruptionBudget that can never allow the update; empty if none is known.
	Budget string
}

// NotAllowed is what refusals say of an edit that is Forbidden.
const NotAllowed = "which " + inplace.LabelUpdate + "=" + string(inplace.ModeInPlaceOnly) + " does not allow"

// InPlace reports whether the edit is made in place.
func (j EditDecision) InPlace() bool { return len(j.Reasons) == 0 }

// String returns the decision on one line, for the decision annotation and warnings.
func (j EditDecision) String() string {
	if !j.InPlace() {
		return edit.RecreatePrefix + j.Reasons.String()
	}
	return j.Change.String()
}

// Recorded returns the decision as it is recorded for an edit that makes this template. Without the hash it would seem to be about a later
// edit, of which no manager was asked.
func Recorded(decision string, template apps.Template) string {
	if decision == "" {
		return ""
	}
	return decision + recordedFor(template.Hash())
}

// DecidedOn returns the decision that is recorded on a workload whose template has that hash; empty if none is, or if it is about another
// template.
func DecidedOn(workload metav1.Object, templateHash string) string {
	decision, is := strings.CutSuffix(workload.GetAnnotations()[inplace.AnnotationDecision], recordedFor(templateHash))
	if !is {
		return ""
	}
	return decision
}

func recordedFor(templateHash string) string { return " (template " + templateHash + ")" }

// RecordDecision returns the operations that write on a workload what its last template edit does (Recorded), or remove that if it is
// empty, and that make the other changes of its annotations.
func RecordDecision(workload metav1.Object, decision string, others ...patches.EntryChange) []jsonpatch.Operation {
	changes := append([]patches.EntryChange{{Key: inplace.AnnotationDecision, Value: decision, Removing: decision == ""}}, others...)
	if len(workload.GetAnnotations()) > 0 {
		return patches.EntryOperations("annotations", workload.GetAnnotations(), changes)
	}
	if all := patches.Changed(nil, changes); len(all) > 0 {
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", patches.Pointer("metadata", "annotations"), all)}
	}
	return nil
}

// Notices returns further lines that users need to know about the edit.
func (j EditDecision) Notices() []string {
	asides := []string{j.AboutPartition()}
	if j.InPlace() {
		asides = append(asides, j.Change.VariablesRead, j.Change.InitContainersNotRerun, j.Deadline, j.Autoscaler, j.Hooks, j.Budget, j.Duration)
	}
	return slices.DeleteFunc(asides, func(aside string) bool { return aside == "" })
}

// AboutDeadline returns one line about a drain and stop that take longer than the deadline; empty if they do not. Stayput keeps the native
// controller's deadline from passing meanwhile. Timeouts of other tools pass.
func AboutDeadline(drain, grace, deadline time.Duration) string {
	if drain+grace <= deadline {
		return ""
	}
	return fmt.Sprintf("progressDeadlineSeconds of %s: a pod may take %s to drain (%s) and %s to stop (terminationGracePeriodSeconds). "+
		"The deadline waits for that; timeouts of other tools, such as that of helm, do not",
		deadline, drain, inplace.AnnotationDrain, grace)
}

// AboutPartition returns one line about what the partition does to the edit; empty if there is none.
func (j EditDecision) AboutPartition() string {
	what, prefix := fmt.Sprintf("partition %.20s ", j.Partition.Value), "partition "
	if j.Partition.ByWindow() {
		what, prefix = "maintenance window ", "maintenance window "
	}
	switch flaw := j.Partition.Flaw(); {
	case j.Partition == (inplace.Partition{}):
		return ""
	case !j.InPlace():
		return what + "does not apply: an edit that cannot be made in place is native for all pods"
	case j.Undo:
		return what + "does not apply: an undo takes back all pods that have moved"
	case flaw != "":
		return prefix + "is not valid, so no pod is updated for now: " + flaw
	case j.Partition.ByWindow():
		return prefix + "is closed: pods stay at the current revision and wait for " + j.Partition.Closed +
			", unless the annotation is changed or Stayput is uninstalled"
	}
	return fmt.Sprintf(
		"partition %s: so many pods stay at the current revision until the partition is lowered or removed, or Stayput is uninstalled",
		j.Partition.Value)
}

// WarningPrefix is the prefix of a line that is an admission warning.
const WarningPrefix = "stayput: "

// Preview is an EditDecision with its effect on pods.
type Preview struct {
	EditDecision
	// Pods is how many pods the workload wants.
	Pods int
	// AtPartition is how many of them a partition keeps on their old revision.
	AtPartition int
	// AtATime is how many of the others restart side by side, if any do.
	AtATime int
	// MinReadySeconds is how long a pod must be Ready until the next one may restart.
	MinReadySeconds int32
	// SurgePods is how many more pods there are during the update, at most.
	SurgePods int
	// Replaced is in place of how many pods surge pods stay.
	Replaced int
}

// Moving returns how many pods are updated now.
func (f Preview) Moving() int { return f.Pods - f.AtPartition }
