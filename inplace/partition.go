package inplace

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	// LabelPartition says, on a Deployment or DaemonSet, how many of its pods keep their old revision until the value is lowered or removed:
	// a number, or `0percent` to `100percent`. A percentage is rounded up, but only `100percent` keeps all of several pods. Where all
	// are kept, nodes pull the new images all the same. A StatefulSet has a partition in its spec instead.
	//
	// It is a label, whose value cannot have a "%", because the Deployment controller copies annotations to ReplicaSets, but never labels:
	// an undo would bring back the partition of a much earlier update (copyDeploymentAnnotationsToReplicaSet in
	// pkg/controller/deployment/util/deployment_util.go). A number means the same as in partition of a StatefulSet. A percentage means the
	// same as in partition of an OpenKruise CloneSet, and is rounded as in its CalculatePartitionReplicas (pkg/util/tools.go).
	LabelPartition = "stayput.dev/partition"

	// PartitionForm is the regular expression that valid values of LabelPartition match; manifests/base/policy.yaml has the same.
	PartitionForm = `^([0-9]{1,9}|([0-9]{1,2}|100)percent)$`
)

var partitionForm = regexp.MustCompile(PartitionForm)

// Partition is a value of LabelPartition, or what a Window says while it is closed. The empty one keeps no pod. Only Stayput's holds
// enforce it: without Stayput the native controller updates all pods.
type Partition string

// ByWindow reports whether a window sets the partition.
func (p Partition) ByWindow() bool {
	return strings.HasPrefix(string(p), closedWindow) || strings.HasPrefix(string(p), "annotation "+AnnotationMaintenanceWindow)
}

// Where returns where an update waits that the partition stops, as in "waiting at partition 1".
func (p Partition) Where() string {
	if p.ByWindow() {
		return "for " + string(p)
	}
	return "at partition " + string(p)
}

// PartitionOf returns the partition in the labels of a workload.
func PartitionOf(labels map[string]string) Partition {
	value, has := labels[LabelPartition]
	if has && value == "" {
		return `""` // the label exists, and its value is invalid
	}
	return Partition(value)
}

// Flaw returns what is wrong with the value, as one clause; empty if it is valid. The API server rejects invalid values. Where one is
// stored nevertheless, the partition keeps all pods: the user wants some to be kept, and pods that have moved do not come back, while
// pods that wait can go on once the value is corrected. The user has not asked for that stage, so the update is reported as stalled.
func (p Partition) Flaw() string {
	switch {
	case p == "", partitionForm.MatchString(string(p)), strings.HasPrefix(string(p), closedWindow):
		return ""
	case p.ByWindow():
		return string(p)
	}
	return fmt.Sprintf("label %s: %.100q is neither a number nor 0percent to 100percent", LabelPartition, string(p))
}

// Keeps returns how many pods keep their old revision, out of that many.
func (p Partition) Keeps(pods int) int {
	number, percent := strings.CutSuffix(string(p), "percent")
	value, err := strconv.Atoi(number)
	switch {
	case p == "":
		return 0
	case p.ByWindow() || p.Flaw() != "" || err != nil || percent && value == 100:
		return pods
	case percent && pods > 1:
		return min((pods*value+99)/100, pods-1)
	}
	return min(value, pods) // a percentage of one pod keeps it, except 0percent
}

// Next returns the partition of the next stage: it lets twice as many pods be updated as this one, at least one more. So the first stages
// are small, and few stages are needed: of ten pods 1, 2, 4 and 8 are updated.
func (p Partition) Next(pods int) Partition {
	kept := p.Keeps(pods)
	return Partition(strconv.Itoa(max(0, kept-max(1, pods-kept))))
}

// MayMove returns how many more pods may get the new revision. Wanted is the number of pods that the workload wants, old that of pods
// with an old revision, and updated that of pods that have the new revision or are being moved to it. The result is never negative: pods
// with the new revision keep it, even if the partition is raised.
func (p Partition) MayMove(wanted, old, updated int) int {
	kept := p.Keeps(wanted)
	if kept == 0 {
		return old
	}
	return max(0, min(old, wanted-updated)-kept)
}
