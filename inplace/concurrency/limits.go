package concurrency

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/stayput/stayput/inplace"
)

// The flags of the managers that set limits. Each Limit has the name of its flag.
const (
	FlagTotal       = "max-restarting-pods"
	FlagPerNode     = "max-restarting-pods-per-node"
	FlagPerTopology = "max-restarting-pods-per-topology"
)

// Flags are all of them.
var Flags = []string{FlagTotal, FlagPerNode, FlagPerTopology}

// Limit bounds how many pods restart at the same time: of all pods, of those on one node, or of those on nodes with the same value of a
// label.
type Limit struct {
	// Flag is the flag that sets it.
	Flag string
	// TopologyKey is the label's key, with FlagPerTopology.
	TopologyKey string
	// Most is how many pods may restart.
	Most int
}

// Limits are all limits. Without any, pods restart as their workloads allow.
type Limits []Limit

var labelKey = regexp.MustCompile(inplace.LabelKeyForm)

// PerTopology returns the limit that a value of FlagPerTopology describes, as topology.kubernetes.io/zone=3.
func PerTopology(text string) (Limit, error) {
	key, number, _ := strings.Cut(text, "=")
	most, err := strconv.Atoi(number)
	if err != nil || most < 1 || !labelKey.MatchString(key) {
		return Limit{}, fmt.Errorf("%q is no key of a label of nodes with a number of pods; write topology.kubernetes.io/zone=3", text)
	}
	return Limit{Flag: FlagPerTopology, TopologyKey: key, Most: most}, nil
}

// groupOf returns the name of the group of pods with which the limit counts the pod: those on one node, or on nodes with one value of the
// label. Nodes without the label form one group.
func (l Limit) groupOf(pod Pod) string {
	switch l.Flag {
	case FlagPerNode:
		return pod.Node
	case FlagPerTopology:
		return pod.Labels[l.TopologyKey]
	}
	return ""
}

// why returns what a pod waits for whose group has as many as may restart.
func (l Limit) why(pod Pod) string {
	where := ""
	switch l.Flag {
	case FlagPerNode:
		where = " on node " + pod.Node
	case FlagPerTopology:
		where = fmt.Sprintf(" on nodes with %s=%s", l.TopologyKey, pod.Labels[l.TopologyKey])
	}
	return fmt.Sprintf("other pods: as many restart%s as --%s allows (%d)", where, l.Flag, l.Most)
}
