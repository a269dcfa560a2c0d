package steps

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
)

// EditDecision is what the edit of a workload's template will do.
type EditDecision struct {
	Change edit.Change
	// Reasons are why it is not made in place; none if it is.
	Reasons inplace.Reasons
	// Forbidden says that the mode does not let it be made otherwise.
	Forbidden bool
	// Partition is the workload's.
	Partition inplace.Partition
	// Deadline is one line about what of an update in place takes longer than the deadline of the workload; empty if nothing does.
	Deadline string
	// Autoscaler is one line about an autoscaler that takes the starts of containers for load; empty if none does, or none was looked for.
	Autoscaler string
}

// NotAllowed is what refusals say of an edit that is Forbidden.
const NotAllowed = "which " + inplace.LabelUpdate + "=" + string(inplace.ModeInPlaceOnly) + " does not allow"

// DecideEdit asks for the verdict on the whole workload where the edit itself forbids nothing.
func DecideEdit(change edit.Change, mode inplace.Mode, partition inplace.Partition, decision func() Decision) EditDecision {
	decided := EditDecision{Change: change, Reasons: change.Reasons, Partition: partition}
	switch {
	case !mode.Manages():
		decided.Reasons = inplace.Reasons{*mode.Reason()}
	case change.InPlace():
		decided.Reasons = decision().Reasons
	}
	decided.Forbidden = !decided.InPlace() && mode == inplace.ModeInPlaceOnly
	return decided
}

// InPlace reports whether the edit is made in place.
func (j EditDecision) InPlace() bool { return len(j.Reasons) == 0 }

// String is the judgement on one line, for the decision annotation and warnings.
func (j EditDecision) String() string {
	if !j.InPlace() {
		return edit.RecreatePrefix + j.Reasons.String()
	}
	return j.Change.String()
}

// Asides are lines about what else users need to know of the edit.
func (j EditDecision) Asides() []string {
	asides := []string{j.AboutPartition()}
	if j.InPlace() {
		asides = append(asides, j.Change.NotAgain, j.Deadline, j.Autoscaler)
	}
	return slices.DeleteFunc(asides, func(aside string) bool { return aside == "" })
}

// IsAside reports whether the line is one of some Judgement.
func IsAside(line string) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(line, prefix) }
	return slices.ContainsFunc([]string{PartitionPrefix, edit.AboutInitContainers, DeadlinePrefix, AutoscalerPrefix}, begins)
}

// AboutDeadline is one line about what takes longer than the deadline; empty if nothing does. The native controller's deadline waits for that, others' do not.
func AboutDeadline(drain, grace, deadline time.Duration) string {
	if drain+grace <= deadline {
		return ""
	}
	return fmt.Sprintf(DeadlinePrefix+"%s: a pod may take %s to drain (%s) and %s to stop (terminationGracePeriodSeconds). The deadline waits for that; timeouts of other tools, such as that of helm, do not",
		deadline, drain, inplace.LabelDrain, grace)
}

// DeadlinePrefix begins what AboutDeadline says.
const DeadlinePrefix = "progressDeadlineSeconds of "

// AutoscalerPrefix begins what is said of an autoscaler.
const AutoscalerPrefix = "HorizontalPodAutoscaler "

// PartitionPrefix begins what AboutPartition says.
const PartitionPrefix = "partition "

// AboutPartition is one line about what becomes of the partition; empty if there is none.
func (j EditDecision) AboutPartition() string {
	switch flaw := j.Partition.Flaw(); {
	case j.Partition == "":
		return ""
	case !j.InPlace():
		return fmt.Sprintf(PartitionPrefix+"%.20s does not hold this: an edit that cannot be made in place is native, whole, whatever the partition says", string(j.Partition))
	case flaw != "":
		return PartitionPrefix + "not understood, so that no pod is updated for now: " + flaw
	}
	return fmt.Sprintf(PartitionPrefix+"%s: so many pods keep the revision they had before the update, until it is lowered or taken off, or Stayput is gone", j.Partition)
}

// WarningPrefix begins the line where it is an admission warning.
const WarningPrefix = "stayput: "

// Preview is a Judgement with what it means for pods.
type Preview struct {
	EditDecision
	// Pods are those that the workload wants.
	Pods int
	// AtPartition is how many of them a partition keeps on their old revision.
	AtPartition int
	// AtATime is how many of the others restart side by side, if any do.
	AtATime int
	// SurgePods is how many more there are for the time of the update, at most.
	SurgePods int
}

// Moving are the pods that are updated now.
func (f Preview) Moving() int { return f.Pods - f.AtPartition }
