package inplace

import (
	"fmt"
	"strconv"
	"time"
)

// The labels, on a namespace or a workload, that say how updates are carried out. The workload's own goes first. docs/reference.md has the
// first paragraph of each.
const (
	// LabelUpdate says how template edits are carried out: `in-place`, where possible, or `in-place-only`, where others are
	// rejected. On a workload it goes before what the namespace says, and may also be `recreate`, native; it counts only in a labelled namespace.
	//
	// See Mode.
	LabelUpdate = "stayput.dev/update"
	// LabelDrain is how long a pod that no EndpointSlice offers any more goes on serving before its containers restart: a
	// duration in `ms`, `s` and `m`, up to `10m`, by default `2s`. "0" waits for nothing, not even for the EndpointSlices.
	LabelDrain = "stayput.dev/drain"
	// LabelPrePullParallelism is how many nodes at a time pull new images before containers stop: up to 1000, by default 10; "0"
	// pulls none first.
	LabelPrePullParallelism = "stayput.dev/pre-pull-parallelism"
	// LabelSurge says whether a Deployment that may miss no pod gets extra ones during an update: "true", the default, or "false".
	LabelSurge = "stayput.dev/surge"
	// LabelRestart says that containers restart inside their pods where an edit of annotations asks for a restart, as `kubectl rollout restart`
	// does: `in-place`. Without it the pods are replaced, as natively.
	//
	// See AnnotationRestartAnnotations.
	LabelRestart = "stayput.dev/restart"
	// LabelResize says whether containers get other CPU and memory in running pods: "true", wherever they can; "false", never. Without it those
	// do whose resizePolicy says something of the resource that changes. They restart for it where that says so.
	LabelResize = "stayput.dev/resize"
	// LabelInitContainers says what becomes of an update by which containers restart beside init containers that are no sidecars, and do not run again in a
	// pod that lives: "in-place", the default, restarts the others without them; "native" replaces the pods, so that they run.
	LabelInitContainers = "stayput.dev/init-containers"
)

// SettingAnnotations are the annotations that say so as well, on a workload only, where a label has no room.
var SettingAnnotations = []string{AnnotationInPlaceAnnotations, AnnotationRestartAnnotations, AnnotationAuxiliary}

// What holds where no label says otherwise, and the most one may say.
const (
	DefaultDrain              = 2 * time.Second
	DefaultPrePullParallelism = 10
	maxPrePullParallelism     = 1000 // bounds LabelPrePullParallelism
)

// The values of LabelInitContainers.
const (
	InitContainersInPlace = "in-place"
	InitContainersNative  = "native"
)

// RestartInPlace is the value of LabelRestart.
const RestartInPlace = "in-place"

// AnnotationRestartedAt is what `kubectl rollout restart` sets on a template (k8s.io/kubectl/pkg/polymorphichelpers/objectrestarter.go).
const AnnotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

// LongestDrain bounds LabelDrain.
const LongestDrain = 10 * time.Minute

// Settings are what the labels say.
type Settings struct {
	// Drain: see LabelDrain.
	Drain time.Duration
	// PrePullParallelism: see LabelPrePullParallelism.
	PrePullParallelism int
	// Surge: see LabelBorrow.
	Surge bool
	// Restart: see LabelRestart.
	Restart bool
	// InitContainers: updates that leave some out are native. See LabelInitContainers.
	InitContainers bool
	// Partition is the workload's alone: see LabelPartition.
	Partition Partition
	// Resize: see LabelResize.
	Resize Resize
}

// Resize is which containers are resized in running pods: the value of LabelResize.
type Resize string

// Kubernetes takes a container without resizePolicy for one that needs no restart, since there whoever resizes a pod asks for just that. An edit of
// a template has always meant new processes, and many a runtime sizes its heap and its threads by what it starts with. So silence is not enough
// by default.
const (
	ResizeDeclared Resize = ""      // where resizePolicy says whether with a restart
	ResizeAll      Resize = "true"  // wherever they can
	ResizeNone     Resize = "false" // nowhere
)

// SettingsOf reads the settings of a workload. A value that does not parse is rejected at admission
// (manifests/base/policy.yaml); where it gets past that, it counts as absent.
func SettingsOf(namespaceLabels, workloadLabels map[string]string) Settings {
	labels := []map[string]string{workloadLabels, namespaceLabels}
	return Settings{
		Drain:              setting(labels, LabelDrain, parseDrain, DefaultDrain),
		PrePullParallelism: setting(labels, LabelPrePullParallelism, parseParallelism, DefaultPrePullParallelism),
		Surge:              setting(labels, LabelSurge, parseSurge, true),
		Restart:            setting(labels, LabelRestart, parseRestart, false),
		Resize:             setting(labels, LabelResize, parseResize, ResizeDeclared),
		InitContainers:     setting(labels, LabelInitContainers, parseInitContainers, false),
		Partition:          PartitionOf(workloadLabels),
	}
}

// setting is the first value of the label that is there and parses.
func setting[T any](from []map[string]string, label string, parse func(string) (T, error), otherwise T) T {
	for _, labels := range from {
		if text, has := labels[label]; has {
			if value, err := parse(text); err == nil {
				return value
			}
		}
	}
	return otherwise
}

func parseDrain(text string) (time.Duration, error) {
	drain, err := time.ParseDuration(text)
	if err == nil && (drain < 0 || drain > LongestDrain) {
		err = fmt.Errorf("%s is not between 0 and %s", drain, LongestDrain)
	}
	return drain, err
}

func parseParallelism(text string) (int, error) {
	nodes, err := strconv.Atoi(text)
	if err == nil && (nodes < 0 || nodes > maxPrePullParallelism) {
		err = fmt.Errorf("%d is not between 0 and %d", nodes, maxPrePullParallelism)
	}
	return nodes, err
}

func parseSurge(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", text)
}

func parseResize(text string) (Resize, error) {
	if resize := Resize(text); resize == ResizeAll || resize == ResizeNone {
		return resize, nil
	}
	return ResizeDeclared, fmt.Errorf("%q is neither true nor false", text)
}

func parseRestart(text string) (bool, error) {
	if text != RestartInPlace {
		return false, fmt.Errorf("%q is not %s", text, RestartInPlace)
	}
	return true, nil
}

func parseInitContainers(text string) (bool, error) {
	if text != InitContainersInPlace && text != InitContainersNative {
		return false, fmt.Errorf("%q is neither %s nor %s", text, InitContainersInPlace, InitContainersNative)
	}
	return text == InitContainersNative, nil
}
