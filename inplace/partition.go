package inplace

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	// LabelPartition says, on a Deployment or DaemonSet, how many of its pods keep their old revision until the value is lowered or taken off:
	// a number, or `0percent` to `100percent`, which rounds up, but to all of several pods only at `100percent`.
	//
	// It is a label, whose values have no "%": the Deployment controller copies annotations to ReplicaSets, never labels, and an undo would bring
	// back the stage of an update of long ago (copyDeploymentAnnotationsToReplicaSet in pkg/controller/deployment/util/deployment_util.go).
	// A number means what partition of a StatefulSet does, a percentage what that of a CloneSet of OpenKruise does, and it rounds as
	// CalculatePartitionReplicas in its pkg/util/tools.go.
	LabelPartition = "stayput.dev/partition"

	// PartitionForm is what values of LabelPartition look like; manifests/base/policy.yaml has the same.
	PartitionForm = `^([0-9]{1,9}|([0-9]{1,2}|100)percent)$`
)

var partitionForm = regexp.MustCompile(PartitionForm)

// Partition is a value of LabelPartition; empty keeps no pod.
type Partition string

// PartitionOf is what the labels of a workload say.
func PartitionOf(labels map[string]string) Partition {
	value, has := labels[LabelPartition]
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
	return fmt.Sprintf("label %s: %.100q is neither a number nor 0percent to 100percent", LabelPartition, string(p))
}

// Keeps is how many of so many pods keep their old revision.
func (p Partition) Keeps(pods int) int {
	number, percent := strings.CutSuffix(string(p), "percent")
	value, err := strconv.Atoi(number)
	switch {
	case p == "":
		return 0
	case p.Flaw() != "" || err != nil || percent && value == 100:
		return pods
	case percent && pods > 1:
		return min((pods*value+99)/100, pods-1)
	}
	return min(value, pods) // of one pod any percentage keeps it, but for none
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
