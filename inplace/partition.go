package inplace

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	// AnnotationPartition is how many pods of a Deployment or DaemonSet keep their old revision until the value is lowered or removed. A
	// percentage is rounded up, but only `100%` keeps all of several pods, and then nodes still pull the new images. A StatefulSet
	// has a partition in its spec instead.
	//
	// A number means the same as in partition of a StatefulSet. A percentage means the same as in partition of an OpenKruise CloneSet, and
	// is rounded as in its CalculatePartitionReplicas (pkg/util/tools.go).
	AnnotationPartition = "stayput.dev/partition"

	// PartitionForm is the regular expression that valid values of AnnotationPartition match; manifests/base/policy.yaml has the same.
	PartitionForm = `^([0-9]{1,9}|([0-9]{1,2}|100)%)$`
)

var partitionForm = regexp.MustCompile(PartitionForm)

// Partition says which pods keep their old revision: those of a value of AnnotationPartition, and all while a maintenance window is closed
// or there is an Obstacle. The zero Partition keeps no pod. Only Stayput's holds enforce it: without Stayput the native controller updates
// all pods.
type Partition struct {
	// Value is the value of AnnotationPartition; empty if there is none.
	Value string
	// Closed is what pods wait for while the maintenance window is closed, as in "the maintenance window, which opens on Sat 2026-11-28 02:00
	// UTC"; empty while it is open, or if there is none.
	Closed string
	// WindowFlaw is what is wrong with the maintenance window, as one clause; empty if it is valid. Such a window is closed.
	WindowFlaw string
	// Obstacle is why the update waits instead of falling back.
	Obstacle Obstacle
}

// ByWindow reports whether a window keeps all pods.
func (p Partition) ByWindow() bool { return p.Closed != "" || p.WindowFlaw != "" }

// Alone returns the partition as it is while the maintenance window is open.
func (p Partition) Alone() Partition { return Partition{Value: p.Value} }

// Where returns where an update waits that the partition stops, as in "waiting at partition 1".
func (p Partition) Where() string {
	if p.ByWindow() {
		return "for " + cmp.Or(p.Closed, p.WindowFlaw)
	}
	return "at partition " + p.Value
}

// PartitionOf returns the partition in annotations.
func PartitionOf(annotations map[string]string) Partition {
	return Partition{Value: valueOf(annotations, AnnotationPartition)}
}

// Flaw returns what is wrong with the value or the window, as one clause; empty if both are valid, or if the window is closed. The API
// server rejects invalid values. Where one is stored nevertheless, the partition keeps all pods: the user wants some to be kept, and pods
// that have moved do not come back, while pods that wait can go on once the value is corrected. The user has not asked for that stage, so
// the update is reported as stalled.
func (p Partition) Flaw() string {
	switch {
	case p.ByWindow():
		return p.WindowFlaw
	case p.Value == "", partitionForm.MatchString(p.Value):
		return ""
	}
	return fmt.Sprintf("annotation %s: %.100q is neither a number nor 0%% to 100%%", AnnotationPartition, p.Value)
}

// Keeps returns how many pods keep their old revision, out of that many.
func (p Partition) Keeps(pods int) int {
	number, percent := strings.CutSuffix(p.Value, "%")
	value, err := strconv.Atoi(number)
	switch {
	case p == Partition{}:
		return 0
	case p.ByWindow() || p.Obstacle.Any() || p.Flaw() != "" || err != nil:
		return pods
	case percent && value == 100:
		return pods
	case percent && pods > 1:
		return min((pods*value+99)/100, pods-1)
	}
	return min(value, pods) // a percentage of one pod keeps it, except 0%
}

// Next returns the partition of the next stage: it lets twice as many pods be updated as this one, at least one more. So the first stages
// are small, and few stages are needed: of ten pods 1, 2, 4 and 8 are updated.
func (p Partition) Next(pods int) Partition {
	kept := p.Keeps(pods)
	return Partition{Value: strconv.Itoa(max(0, kept-max(1, pods-kept)))}
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
