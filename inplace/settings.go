package inplace

import (
	"slices"
	"strconv"
	"time"
)

// The labels of a namespace or a workload that say how updates are carried out. The workload's label overrides the namespace's.
// docs/reference/settings.md has the first paragraph of each comment.
const (
	// LabelUpdate says how template edits are made: `in-place`, in running pods where that is possible; `in-place-only`, where all other
	// edits are rejected; or on a workload `recreate`, by the native controller. A workload's label overrides the namespace's, and counts
	// only where the namespace has one.
	//
	// See Mode.
	LabelUpdate = "stayput.dev/update"
	// LabelStatefulSets says that StatefulSets are updated in place, too. Without it their updates are native, and no edit of them is
	// rejected.
	//
	// Namespaces were labelled when Stayput did not know StatefulSets. Their operators have to ask for it.
	LabelStatefulSets = "stayput.dev/statefulsets"
	// LabelDrain is how long a pod goes on serving after no EndpointSlice offers it any more, before its containers restart. With "0" it
	// does not even wait for the EndpointSlices.
	LabelDrain = "stayput.dev/drain"
	// LabelPrePullParallelism is the number of nodes that pull new images at the same time, before containers stop. With "0" containers
	// stop before the pull.
	LabelPrePullParallelism = "stayput.dev/pre-pull-parallelism"
	// LabelSurge is when surge pods are used. `true`: only if no pod may be unavailable. `always`: for every Deployment, which restarts up
	// to `maxSurge` more pods at once. `false`: never. Pods that take a device, a port of the node, or a volume of one node get none, unless
	// `maxUnavailable` is an explicit 0.
	LabelSurge = "stayput.dev/surge"
	// LabelRestart says that an edit that asks for a restart, such as `kubectl rollout restart`, restarts containers inside their pods.
	//
	// See AnnotationRestartAnnotations for other edits that ask for a restart.
	LabelRestart = "stayput.dev/restart"
	// LabelResize says whether CPU and memory change in running pods. By default a container is resized only if its `resizePolicy` lists
	// that resource, and it restarts only if the policy says so. `true` resizes all containers where that is possible, `false` none.
	LabelResize = "stayput.dev/resize"
	// LabelInitContainers says what happens if containers restart in pods with init containers, which do not run again in a running pod.
	// `in-place` restarts the containers all the same, and `native` replaces the pods, so that init containers run. Sidecars do not count.
	LabelInitContainers = "stayput.dev/init-containers"
	// LabelDisruptionBudgets says whether a pod that is Ready restarts only if every PodDisruptionBudget that selects it allows one more
	// disruption (`respect`). Native rollouts ask none (`ignore`).
	//
	// See package disruption.
	LabelDisruptionBudgets = "stayput.dev/disruption-budgets"
	// LabelPreRestartTimeout is how long hooks of `stayput.dev/pre-restart-hooks` may hold a pod that is out of service. Then its
	// containers restart, with an event. With "0" no hook holds a pod.
	LabelPreRestartTimeout = "stayput.dev/pre-restart-timeout"
)

// SettingAnnotations are the settings that are annotations, since their values are too long for labels. They count on a workload only,
// apart from AnnotationMaintenanceWindow.
var SettingAnnotations = []string{AnnotationInPlaceAnnotations, AnnotationRestartAnnotations, AnnotationAuxiliary,
	AnnotationCanaryNodes, AnnotationUpdateByTopology, AnnotationUpdateLast, AnnotationPreRestartHooks,
	AnnotationMaintenanceWindow}

// The defaults, and the largest value, of settings.
const (
	DefaultDrain              = 2 * time.Second
	DefaultPrePullParallelism = 10
	maxPrePullParallelism     = 1000 // bounds LabelPrePullParallelism
	// DefaultPreRestartTimeout is longer than the five minutes that targets of AWS take by default until they are deregistered.
	DefaultPreRestartTimeout = 10 * time.Minute
)

// The values of LabelInitContainers.
const (
	InitContainersInPlace = "in-place"
	InitContainersNative  = "native"
)

// The values of LabelDisruptionBudgets.
const (
	DisruptionBudgetsRespect = "respect"
	DisruptionBudgetsIgnore  = "ignore"
)

// RestartInPlace is the value of LabelRestart, StatefulSetsInPlace that of LabelStatefulSets.
const (
	RestartInPlace      = "in-place"
	StatefulSetsInPlace = "in-place"
)

// AnnotationRestartedAt is what `kubectl rollout restart` sets on a template (k8s.io/kubectl/pkg/polymorphichelpers/objectrestarter.go).
const AnnotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

// LongestDrain is the longest drain that LabelDrain may ask for, LongestPreRestartTimeout that of LabelPreRestartTimeout.
const (
	LongestDrain             = 10 * time.Minute
	LongestPreRestartTimeout = 2 * time.Hour
)

// Settings are the values of the labels.
type Settings struct {
	// StatefulSets: see LabelStatefulSets.
	StatefulSets bool
	// Drain: see LabelDrain.
	Drain time.Duration
	// PrePullParallelism: see LabelPrePullParallelism.
	PrePullParallelism int
	// Surge: see LabelSurge.
	Surge Surge
	// Restart: see LabelRestart.
	Restart bool
	// InitContainers: updates that would not run init containers again are native. See LabelInitContainers.
	InitContainers bool
	// DisruptionBudgets: PodDisruptionBudgets count. See LabelDisruptionBudgets.
	DisruptionBudgets bool
	// PreRestartTimeout: see LabelPreRestartTimeout.
	PreRestartTimeout time.Duration
	// Partition: see LabelPartition, which counts on a workload only.
	Partition Partition
	// WindowChanges is when the maintenance window opens or closes next; zero if there is none, or if it does not within a week. While the
	// window is closed, Partition keeps all pods. See Window.
	WindowChanges time.Time
	// Resize: see LabelResize.
	Resize Resize
}

// Surge says which Deployments get surge pods during an update. It is the value of LabelSurge.
type Surge string

// The values of LabelSurge. None is the same as SurgeNever.
const (
	SurgeNeeded Surge = "true"   // where no pod may be unavailable
	SurgeAlways Surge = "always" // wherever maxSurge allows one
	SurgeNever  Surge = "false"
)

// Allowed reports whether some Deployment may get surge pods.
func (s Surge) Allowed() bool { return s == SurgeNeeded || s == SurgeAlways }

// Resize says which containers are resized in running pods. It is the value of LabelResize.
type Resize string

// Kubernetes resizes a container without resizePolicy without a restart, because a client that resizes a pod asks for just that. An edit
// of a template, however, has always meant new processes, and many runtimes size their heap and their threads by the resources that they
// start with. So by default Stayput resizes only containers that have a resizePolicy for the resource.
const (
	ResizeDeclared Resize = ""      // where resizePolicy names the resource
	ResizeAll      Resize = "true"  // wherever possible
	ResizeNone     Resize = "false" // never
)

// SettingsOf returns the settings of a workload. The API server rejects values that do not parse (manifests/base/policy.yaml); where such
// a value is stored nevertheless, it counts as absent.
func SettingsOf(namespaceLabels, workloadLabels map[string]string) Settings {
	labels := []map[string]string{workloadLabels, namespaceLabels}
	return Settings{
		StatefulSets:       setting(labels, LabelStatefulSets, onWith(StatefulSetsInPlace), false),
		Drain:              setting(labels, LabelDrain, upTo(LongestDrain), DefaultDrain),
		PrePullParallelism: setting(labels, LabelPrePullParallelism, parseParallelism, DefaultPrePullParallelism),
		Surge:              setting(labels, LabelSurge, oneOf(SurgeNeeded, SurgeAlways, SurgeNever), SurgeNeeded),
		Restart:            setting(labels, LabelRestart, onWith(RestartInPlace), false),
		Resize:             setting(labels, LabelResize, oneOf(ResizeAll, ResizeNone), ResizeDeclared),
		InitContainers:     setting(labels, LabelInitContainers, onWith(InitContainersNative, InitContainersInPlace), false),
		DisruptionBudgets:  setting(labels, LabelDisruptionBudgets, onWith(DisruptionBudgetsRespect, DisruptionBudgetsIgnore), false),
		PreRestartTimeout:  setting(labels, LabelPreRestartTimeout, upTo(LongestPreRestartTimeout), DefaultPreRestartTimeout),
		Partition:          PartitionOf(workloadLabels),
	}
}

// setting returns the first value of the label that exists and parses.
func setting[T any](from []map[string]string, label string, parse func(string) (T, bool), otherwise T) T {
	for _, labels := range from {
		if text, has := labels[label]; has {
			if value, valid := parse(text); valid {
				return value
			}
		}
	}
	return otherwise
}

// onWith returns the parser of a setting that is on with one value, and off with others.
func onWith(on string, off ...string) func(text string) (bool, bool) {
	return func(text string) (bool, bool) { return text == on, text == on || slices.Contains(off, text) }
}

// oneOf returns the parser of these values.
func oneOf[T ~string](values ...T) func(text string) (T, bool) {
	return func(text string) (T, bool) { return T(text), slices.Contains(values, T(text)) }
}

// upTo returns the parser of durations that are no longer than that.
func upTo(longest time.Duration) func(text string) (time.Duration, bool) {
	return func(text string) (time.Duration, bool) {
		parsed, err := time.ParseDuration(text)
		return parsed, err == nil && parsed >= 0 && parsed <= longest
	}
}

func parseParallelism(text string) (int, bool) {
	nodes, err := strconv.Atoi(text)
	return nodes, err == nil && nodes >= 0 && nodes <= maxPrePullParallelism
}

// During returns the settings at that time, given the maintenance window.
func (s Settings) During(window Window, now time.Time) Settings {
	s.Partition, s.WindowChanges = window.Keeping(s.Partition, now)
	return s
}
