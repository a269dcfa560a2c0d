package inplace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What the API server selects by, before it calls a webhook, is a label. docs/reference/settings.md has the first paragraph of each
// comment.
const (
	// LabelUpdate says how template edits are made: `in-place`, in running pods where that is possible; `in-place-only`, where all other
	// edits are rejected; or on a workload `native`, by the native controller. A workload's label overrides the namespace's, and counts
	// only where the namespace has one. With `updateStrategy: OnDelete` only a workload's own label counts. Then one pod at a time is
	// updated, and a pod that cannot be updated in place keeps its revision until you delete it.
	//
	// See Mode.
	LabelUpdate = "stayput.dev/update"
	// LabelKinds is the kinds of workloads for which `stayput.dev/update` of the namespace counts. Workloads of other kinds are updated
	// natively, and no edit of them is rejected, unless they have that label themselves.
	//
	// The default is the safe one: a StatefulSet often belongs to an operator, which counts on how it is updated.
	LabelKinds = "stayput.dev/kinds"
)

// Every other setting is an annotation, of a namespace or of a workload there, which overrides the namespace's. So all have one place, and
// values need no other spelling than Kubernetes has for them: labels allow no comma, space or percent sign.
const (
	// AnnotationDrain is how long a pod goes on serving after no EndpointSlice offers it any more, before its containers restart. With "0"
	// it does not even wait for the EndpointSlices.
	AnnotationDrain = "stayput.dev/drain"
	// AnnotationPrePullParallelism is the number of nodes that pull new images at the same time, before containers stop. With "0"
	// containers stop before the pull.
	AnnotationPrePullParallelism = "stayput.dev/pre-pull-parallelism"
	// AnnotationSurge is when surge pods are used. `needed`: only if no pod may be unavailable. `replace`: for every Deployment,
	// and in the end they take the place of as many old pods, up to `maxSurge`. `never`: for none. Pods that take a device, a port of the
	// node, or a volume of one node get none, unless `maxUnavailable` is an explicit 0.
	AnnotationSurge = "stayput.dev/surge"
	// AnnotationResize says whether CPU and memory change in running pods. By default a container is resized only if its `resizePolicy`
	// lists that resource, and it restarts only if the policy says so. `in-place` resizes all containers where that is possible, `native`
	// none.
	AnnotationResize = "stayput.dev/resize"
	// AnnotationInitContainers says what happens if containers restart in pods with init containers, which do not run again in a running
	// pod. `in-place` restarts the containers all the same, and `native` replaces the pods, so that init containers run. Sidecars do not
	// count.
	AnnotationInitContainers = "stayput.dev/init-containers"
	// AnnotationDisruptionBudgets says whether a pod that is Ready restarts only if every PodDisruptionBudget that selects it allows one
	// more disruption (`respect`). Native rollouts ask none (`native`).
	//
	// See package disruption.
	AnnotationDisruptionBudgets = "stayput.dev/disruption-budgets"
	// AnnotationPreRestartTimeout is how long hooks of `stayput.dev/pre-restart-hooks` may hold a pod that is out of service. Then its
	// containers restart, with an event. With "0" no hook holds a pod.
	AnnotationPreRestartTimeout = "stayput.dev/pre-restart-timeout"
	// AnnotationUnreachableNodes says whether the update of a DaemonSet waits for nodes whose kubelets do not report. `native`: they count
	// towards `maxUnavailable`. `skip`: they do not, unless the pod there has begun the update; otherwise it follows when its node is back.
	// Other kinds do as natively: a Deployment replaces such pods, and a StatefulSet waits.
	//
	// A pod of a StatefulSet must not run twice.
	AnnotationUnreachableNodes = "stayput.dev/unreachable-nodes"
	// AnnotationLocked names settings of the namespace that its workloads cannot override, without `stayput.dev/`, as in
	// `update,maintenance-window,drain`. Where the namespace has no value of such a setting, the default counts.
	AnnotationLocked = "stayput.dev/locked"
)

// The defaults, and the largest values, of settings.
const (
	DefaultKinds              = "deployments.daemonsets"
	DefaultDrain              = 2 * time.Second
	LongestDrain              = 10 * time.Minute
	DefaultPrePullParallelism = 10
	maxPrePullParallelism     = 1000
	// DefaultPreRestartTimeout is longer than the five minutes that targets of AWS take by default until they are deregistered.
	DefaultPreRestartTimeout = 10 * time.Minute
	LongestPreRestartTimeout = 2 * time.Hour
)

// The values of AnnotationInitContainers, AnnotationResize, AnnotationDisruptionBudgets and AnnotationUnreachableNodes.
const (
	InPlace                  = "in-place"
	Native                   = "native"
	DisruptionBudgetsRespect = "respect"
	UnreachableNodesSkip     = "skip"
)

// AnnotationRestartedAt is what `kubectl rollout restart` sets on a template (k8s.io/kubectl/pkg/polymorphichelpers/objectrestarter.go).
const AnnotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

// Setting is a setting that is an annotation.
type Setting struct {
	Key string
	// Values says which values it may have, and Default what counts without one: a value, or in words.
	Values, Default string
	// Kinds are the kinds of workloads on which it counts; none if it counts on all.
	Kinds []string
	// valid reports whether a value counts. It is nil where a value that is not valid is not as good as none: the update then waits, or the
	// user is told.
	valid func(value string) bool
}

// Annotations are the settings that are annotations. The API server rejects values that are not valid (manifests/base/policy.yaml).
var Annotations = []Setting{
	{Key: AnnotationMaintenanceWindow, Values: "days, times and a zone, separated by `;`; or `always`", Default: "none: at any time"},
	{Key: AnnotationDisruptionBudgets, Values: quoted(DisruptionBudgetsRespect, Native), Default: quoted(Native),
		valid: valid(onWith(DisruptionBudgetsRespect, Native))},
	{Key: AnnotationDrain, Values: durations(LongestDrain), Default: "`2s`", valid: valid(upTo(LongestDrain))},
	{Key: AnnotationPreRestartHooks, Values: "names, comma-separated", Default: "none: no pod waits", valid: areHooks},
	{Key: AnnotationPreRestartTimeout, Values: durations(LongestPreRestartTimeout), Default: "`10m`",
		valid: valid(upTo(LongestPreRestartTimeout))},
	{Key: AnnotationPartition, Values: "a number, or `0%` to `100%`", Default: "none: no pod stays",
		Kinds: []string{"Deployment", "DaemonSet"}},
	{Key: AnnotationCanaryNodes, Values: "a label selector", Default: "none: no node goes first", valid: isSelector},
	{Key: AnnotationUpdateByTopology, Values: "the key of a label", Default: "none: nodes in any order", valid: isLabelKey},
	{Key: AnnotationUpdateLast, Values: "a label selector", Default: "none: no pod goes last", valid: isSelector},
	{Key: AnnotationUnreachableNodes, Values: quoted(UnreachableNodesSkip, Native), Default: quoted(Native), Kinds: []string{"DaemonSet"},
		valid: valid(onWith(UnreachableNodesSkip, Native))},
	{Key: AnnotationSurge, Values: quoted(SurgeNeeded, SurgeReplace, SurgeNever), Default: quoted(SurgeNeeded), Kinds: []string{"Deployment"},
		valid: valid(oneOf(SurgeNeeded, SurgeReplace, SurgeNever))},
	{Key: AnnotationPrePullParallelism, Values: "`0` to `1000`", Default: "`10`", valid: valid(parseParallelism)},
	{Key: AnnotationInPlaceAnnotations, Values: "keys and `prefix/*`, comma-separated", Default: "none: pods are replaced"},
	{Key: AnnotationRestartAnnotations, Values: "keys and `prefix/*`, comma-separated", Default: "none: pods are replaced"},
	{Key: AnnotationAuxiliary, Values: "names of containers, comma-separated", Default: "none", valid: areContainers},
	{Key: AnnotationInitContainers, Values: quoted(InPlace, Native), Default: quoted(InPlace), valid: valid(onWith(Native, InPlace))},
	{Key: AnnotationResize, Values: quoted(ResizeAll, ResizeNone), Default: "none: by `resizePolicy`",
		valid: valid(oneOf(ResizeAll, ResizeNone))},
}

// In reports whether the annotations have a value of the setting that counts.
func (s Setting) In(annotations map[string]string) bool {
	value, has := annotations[s.Key]
	return has && (s.valid == nil || s.valid(value))
}

// Locked reports whether a namespace with these annotations locks the setting. The API server then accepts it on no workload anew. One that
// is there already does not count.
func Locked(namespace map[string]string, key string) bool {
	for name := range strings.SplitSeq(namespace[AnnotationLocked], ",") {
		if strings.TrimSpace(name) == short(key) {
			return true
		}
	}
	return false
}

// short returns the name of a setting without Stayput's prefix.
func short(key string) string { return strings.TrimPrefix(key, "stayput.dev/") }

// Where a value that counts for a workload comes from.
const (
	OfWorkload  = "workload"
	OfNamespace = "namespace"
	ByDefault   = "default"
)

// inForce returns the value that counts for a workload, and whose it is: its own, or else that of its namespace. It is empty, and
// ByDefault, if neither has one.
func (s Setting) inForce(namespace, workload map[string]string) (value, from string) {
	switch {
	case s.In(workload) && !Locked(namespace, s.Key):
		return workload[s.Key], OfWorkload
	case s.In(namespace):
		return namespace[s.Key], OfNamespace
	}
	return "", ByDefault
}

// InForce returns the settings in annotations that count for a workload, from its annotations and those of its namespace.
func InForce(namespace, workload map[string]string) map[string]string {
	values := map[string]string{}
	for _, setting := range Annotations {
		if value, from := setting.inForce(namespace, workload); from != ByDefault {
			values[setting.Key] = value
		}
	}
	return values
}

// Settings are what plans need of the settings in annotations.
type Settings struct {
	// namespace has the annotations of the namespace: see InForce.
	namespace map[string]string
	// Drain: see AnnotationDrain.
	Drain time.Duration
	// PrePullParallelism: see AnnotationPrePullParallelism.
	PrePullParallelism int
	// Surge: see AnnotationSurge.
	Surge Surge
	// DisruptionBudgets: PodDisruptionBudgets count. See AnnotationDisruptionBudgets.
	DisruptionBudgets bool
	// PreRestartTimeout: see AnnotationPreRestartTimeout.
	PreRestartTimeout time.Duration
	// SkipsUnreachable: see AnnotationUnreachableNodes.
	SkipsUnreachable bool
	// Partition: see AnnotationPartition.
	Partition Partition
	// WindowChanges is when the maintenance window opens or closes next; zero if there is none, or if it does not within a week. While the
	// window is closed, Partition keeps all pods. See Window.
	WindowChanges time.Time
}

// Surge says which Deployments get surge pods during an update. It is the value of AnnotationSurge.
type Surge string

// The values of AnnotationSurge. None is the same as SurgeNever.
const (
	SurgeNeeded  Surge = "needed"  // where no pod may be unavailable
	SurgeReplace Surge = "replace" // wherever maxSurge allows one; they stay
	SurgeNever   Surge = "never"
)

// Allowed reports whether some Deployment may get surge pods.
func (s Surge) Allowed() bool { return s == SurgeNeeded || s == SurgeReplace }

// Resize says which containers are resized in running pods. It is the value of AnnotationResize.
type Resize string

// Kubernetes resizes a container without resizePolicy without a restart, because a client that resizes a pod asks for just that. An edit
// of a template, however, has always meant new processes, and many runtimes size their heap and their threads by the resources that they
// start with. So by default Stayput resizes only containers that have a resizePolicy for the resource.
const (
	ResizeDeclared Resize = ""      // where resizePolicy names the resource
	ResizeAll      Resize = InPlace // wherever possible
	ResizeNone     Resize = Native  // never
)

// SettingsOf returns the settings of a workload from the annotations of its namespace and its own.
func SettingsOf(namespace, workload map[string]string) Settings {
	values := InForce(namespace, workload)
	return Settings{
		namespace:          namespace,
		Drain:              value(values, AnnotationDrain, upTo(LongestDrain), DefaultDrain),
		PrePullParallelism: value(values, AnnotationPrePullParallelism, parseParallelism, DefaultPrePullParallelism),
		Surge:              value(values, AnnotationSurge, oneOf(SurgeNeeded, SurgeReplace, SurgeNever), SurgeNeeded),
		DisruptionBudgets:  value(values, AnnotationDisruptionBudgets, onWith(DisruptionBudgetsRespect), false),
		PreRestartTimeout:  value(values, AnnotationPreRestartTimeout, upTo(LongestPreRestartTimeout), DefaultPreRestartTimeout),
		SkipsUnreachable:   value(values, AnnotationUnreachableNodes, onWith(UnreachableNodesSkip), false),
		Partition:          PartitionOf(values),
	}
}

// InForce returns all settings in annotations that count for the workload.
func (s Settings) InForce(workload interface{ GetAnnotations() map[string]string }) map[string]string {
	return InForce(s.namespace, workload.GetAnnotations())
}

// During returns the settings at that time, given the maintenance window.
func (s Settings) During(window Window, now time.Time) Settings {
	s.Partition, s.WindowChanges = window.Keeping(s.Partition, now)
	return s
}

// value returns the value of the annotation if it exists and parses.
func value[T any](values map[string]string, annotation string, parse func(string) (T, bool), otherwise T) T {
	if value, valid := parse(values[annotation]); valid {
		return value
	}
	return otherwise
}

// valid returns whether a value parses.
func valid[T any](parse func(string) (T, bool)) func(string) bool {
	return func(text string) bool {
		_, valid := parse(text)
		return valid
	}
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

// durations says what upTo parses.
func durations(longest time.Duration) string {
	return fmt.Sprintf("`0` to `%s`, in `ms`, `s`, `m` and `h`", strings.NewReplacer("m0s", "m", "h0m0s", "h").Replace(longest.String()))
}

// quoted says which words a setting may have.
func quoted[T ~string](values ...T) string {
	var all []string
	for _, value := range values {
		all = append(all, "`"+string(value)+"`")
	}
	return strings.Join(all, ", ")
}
