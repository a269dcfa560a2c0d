package inplace

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// AnnotationPartition says, on a Deployment or DaemonSet, how many of its pods keep their old revision until the value is lowered or taken off:
	// a number, or `0%` to `100%`, which rounds up, but to all of several pods only at `100%`. It is no label, as those have no "%".
	//
	// It means what partition of a CloneSet of OpenKruise does, and rounds as CalculatePartitionReplicas in its pkg/util/tools.go.
	AnnotationPartition = "stayput.dev/partition"
)

// PartitionForm is what values of AnnotationPartition look like; manifests/base/policy.yaml has the same.
const PartitionForm = `^([0-9]{1,9}|([0-9]{1,2}|100)%)$`

var partitionForm = regexp.MustCompile(PartitionForm)

// Partition is a value of AnnotationPartition; empty keeps no pod.
type Partition string

// PartitionOf is what the annotations of a workload say.
func PartitionOf(annotations map[string]string) Partition {
	value, has := annotations[AnnotationPartition]
	if has && value == "" {
		return `""` // it is there, and wrong
	}
	return Partition(value)
}

// Flaw is what is wrong with it, one clause; empty if nothing is. Such a value is rejected at admission; where it gets past that, all pods are
// kept: somebody wanted some to be, and those that have moved do not come back, while those that wait can go on once it is mended. It is no
// stage that anybody asked for: the update stalls, and says so.
func (p Partition) Flaw() string {
	if p == "" || partitionForm.MatchString(string(p)) {
		return ""
	}
	return fmt.Sprintf("annotation %s: %.100q is neither a number nor 0%% to 100%%", AnnotationPartition, string(p))
}

// Keeps is how many of so many pods keep their old revision.
func (p Partition) Keeps(pods int) int {
	switch {
	case p == "":
		return 0
	case p.Flaw() != "":
		return pods
	}
	value := intstr.Parse(string(p))
	kept, err := intstr.GetScaledValueFromIntOrPercent(&value, pods, true)
	switch {
	case err != nil:
		return pods
	case value.Type == intstr.String && p != "100%" && pods > 1:
		return min(kept, pods-1)
	}
	return min(kept, pods)
}

// MayMove is how many more pods may take the new revision, where so many are wanted, so many have the old one, and so many have, or are on their
// way to, the new one. It is never negative: who has the new revision keeps it, however the partition is raised.
func (p Partition) MayMove(wanted, old, updated int) int {
	kept := p.Keeps(wanted)
	if kept == 0 {
		return old
	}
	return max(0, min(old, wanted-updated)-kept)
}
