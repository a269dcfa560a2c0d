package readiness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// Ready = ContainersReady and all gates. A kubelet says so too, but from what it knew at its last sync: one or two seconds after a
// gate has moved, on a busy node later. The API server says so in the very write that moves the gate, by this rule. It does so by
// itself if it can change what is written (manifests/ready), else by asking a manager (manifests/ready-webhook). Stayput sees that
// the rule is in force if the answer to its own write shows it. Nothing else depends on the rule. When Stayput closes a gate, that answer
// already has Ready=False, so nothing waits for the kubelet.
//
// manifests/cel compares policy and webhook with this rule, on random writes. What is stored is stored unchanged the next time. So where
// both are installed, as during an upgrade of the cluster, the policy comes first and leaves the webhook nothing to be asked about.

// Writer is the kind of client that writes the status of a pod.
type Writer int

// These are the writers of pods/status.
const (
	OtherWriter   Writer = iota
	KubeletWriter        // the kubelet of the pod's own node
	OwnWriter            // Stayput
)

// ServiceAccount is the name of the managers' service account in manifests/base. Users of the chart may choose another.
const ServiceAccount = "stayput"

// UserOf returns the user name of the service account of that name in that namespace.
func UserOf(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

// WriterOf returns the writer of the status of a pod on that node, by its user name and groups. The argument own is Stayput's user
// name.
func WriterOf(own, user string, groups []string, node string) Writer {
	switch {
	case user == own:
		return OwnWriter
	case node != "" && user == "system:node:"+node && slices.Contains(groups, "system:nodes"):
		return KubeletWriter
	}
	return OtherWriter
}

const (
	// MessageAhead is the message of a Ready that the kubelet does not know of yet. A kubelet that finds another message than its own
	// syncs at once (NeedToReconcilePodReadiness in pkg/kubelet/status/status_manager.go). With an empty message it would keep
	// Ready=False in its cache, and would see no change when a gate closes next.
	MessageAhead = "Ready follows at once"
	// tooEarlyFor is how long a container may be reported as started although it is not. It counts from the container's start plus one
	// period of its startup probe.
	tooEarlyFor = 5 * time.Second
)

// StoredConditions returns the conditions that the API server stores when the writer changes the old pod into the one sent. Only
// ConditionServing and Ready can differ from what was sent, and only for pods with Stayput's gate.
func StoredConditions(old, sent *corev1.Pod, writer Writer) []corev1.PodCondition {
	if writer == OtherWriter || !Gated(sent) {
		return sent.Status.Conditions
	}
	stored := sent.DeepCopy()
	if writer == KubeletWriter {
		putCondition(stored, openedByReport(old, sent))
	}
	putCondition(stored, readiness(old, stored))
	return stored.Status.Conditions
}

// openedByReport returns the gate that opens with a kubelet's report, or nil if none opens. It opens with the first report of a new
// pod, even if no manager runs then, and with the report which shows that a patched pod's old containers have stopped. If the pod was
// patched while it served, it opens with every report which does not show that an old container is about to stop: see stopping.go.
func openedByReport(last, pod *corev1.Pod) *corev1.PodCondition {
	reason, generation := ReasonReopened, pod.Generation
	switch {
	case Unopened(pod):
		reason = ReasonCreated
	case Closed(pod) && restartReported(last, pod):
	case DrainsStopping(pod) && !MoveOf(pod).stops(pod):
		generation = apps.Condition(pod, inplace.ConditionServing).ObservedGeneration // the restart for the patch is not proved
	default:
		return nil
	}
	return &corev1.PodCondition{Type: inplace.ConditionServing, Status: corev1.ConditionTrue, Reason: reason,
		LastTransitionTime: reportedAt(pod), ObservedGeneration: generation}
}

// restartReported reports whether the report shows that the old containers of a patched pod have stopped. It is the part of
// podstate.MarkedPod.MayReopen that needs no clock, so the gate opens even if no manager runs. The gate must have been closed before
// Stayput's patch, and not again since for a next patch. That patch must be the pod's last one. No container may be Unsure, and the
// pod must not be a surge pod.
func restartReported(last, pod *corev1.Pod) bool {
	gate, move := apps.Condition(pod, inplace.ConditionServing), MoveOf(pod)
	unsure := false
	for _, before := range move.Containers {
		unsure = unsure || before.Unsure
	}
	closedBefore := gate.ObservedGeneration > 0 && gate.ObservedGeneration < pod.Generation
	return closedBefore && move.Generation == pod.Generation && !unsure && pod.Annotations[inplace.AnnotationSurgePod] == "" &&
		move.Observed(pod) && move.OldStopped(last, pod)
}

// reportedAt returns the latest time in a report. Policies of the API server have no clock.
func reportedAt(pod *corev1.Pod) metav1.Time {
	at := pod.CreationTimestamp
	if ready := apps.Condition(pod, corev1.ContainersReady); ready != nil {
		at.Time = inplace.Latest(at.Time, ready.LastTransitionTime.Time)
	}
	for status := range containerStatuses(pod) {
		if status.State.Running != nil {
			at.Time = inplace.Latest(at.Time, status.State.Running.StartedAt.Time)
		}
	}
	return at
}

// readiness returns the Ready condition to store. It is nil if it is to be stored as sent. If containers are not ready, kubelets
// report that by themselves.
func readiness(old, sent *corev1.Pod) *corev1.PodCondition {
	ready, containers := apps.Condition(sent, corev1.PodReady), apps.Condition(sent, corev1.ContainersReady)
	if ready == nil || containers == nil || containers.Status != corev1.ConditionTrue {
		return nil
	}
	next, at, shut := *ready, containers.LastTransitionTime, closedGates(sent)
	for _, gate := range gatesOf(sent) {
		at.Time = inplace.Latest(at.Time, gate.LastTransitionTime.Time)
	}
	switch {
	case len(shut) > 0 && ready.Status == corev1.ConditionTrue:
		next.Status, next.Reason, next.Message = corev1.ConditionFalse, ReasonGatesNotReady, strings.Join(shut, ", ")
	case len(shut) == 0 && ready.Status == corev1.ConditionFalse && ready.Reason == ReasonGatesNotReady &&
		!startupUnproved(sent) && !openedUnreachable(sent):
		next.Status, next.Reason, next.Message = corev1.ConditionTrue, "", MessageAhead
	default:
		at = ready.LastTransitionTime
	}
	next.LastTransitionTime = at
	if before := apps.Condition(old, corev1.PodReady); before != nil && before.Status == next.Status {
		next.LastTransitionTime = before.LastTransitionTime // otherwise every new message would make the pod younger
	}
	return &next
}

// openedUnreachable reports whether Stayput's gate was opened while the pod's node was unreachable. The pod's status of its containers
// is older than that.
func openedUnreachable(pod *corev1.Pod) bool {
	gate := apps.Condition(pod, inplace.ConditionServing)
	return gate != nil && gate.Status == corev1.ConditionTrue && gate.Reason == ReasonNodeUnknown
}

// gatesOf returns the conditions of the pod's readiness gates, as far as there are any.
func gatesOf(pod *corev1.Pod) []*corev1.PodCondition {
	var gates []*corev1.PodCondition
	for _, gate := range pod.Spec.ReadinessGates {
		if c := apps.Condition(pod, gate.ConditionType); c != nil {
			gates = append(gates, c)
		}
	}
	return gates
}

// closedGates returns, for each gate that is not open, the kubelet's message: GeneratePodReadyCondition in
// pkg/kubelet/status/generate.go. With another message the kubelet would sync at once. Then its sync for Stayput's patch, a moment
// later, would have to wait until the kubelet looks at the containers again.
func closedGates(pod *corev1.Pod) []string {
	var shut []string
	for _, gate := range pod.Spec.ReadinessGates {
		switch c := apps.Condition(pod, gate.ConditionType); {
		case c == nil:
			shut = append(shut, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case c.Status != corev1.ConditionTrue:
			shut = append(shut, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, c.Status))
		}
	}
	return shut
}

// startupUnproved reports whether a container may have been reported ready without its startup probe. Kubelets 1.35 and 1.36 copy from the
// previous container that it has started (convertToAPIContainerStatuses in pkg/kubelet/kubelet_pods.go; kubernetes#141155). They do
// so until the probe's next run, at most one period later. Then the container has not started, and is not ready. If there is also a
// readiness probe, that probe alone decides until then. Without a startup probe nothing is copied: the container is ready because
// its own readiness probe said so, or because it runs.
func startupUnproved(pod *corev1.Pod) bool {
	ready := apps.Condition(pod, corev1.ContainersReady)
	return ready == nil || slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		status := ContainerStatus(pod, c.Name)
		return c.StartupProbe != nil && status.RestartCount > 0 && status.State.Running != nil &&
			ready.LastTransitionTime.Sub(status.State.Running.StartedAt.Time) < startupKnown(c)
	})
}

// startupKnown returns how long after a container's start the kubelet's report of its startup probe is known to come from that
// probe.
func startupKnown(c corev1.Container) time.Duration {
	return time.Duration(c.StartupProbe.PeriodSeconds)*time.Second + tooEarlyFor
}

// WithCondition returns the conditions with set in the place of the one of its type.
func WithCondition(all []corev1.PodCondition, set corev1.PodCondition) []corev1.PodCondition {
	if at := apps.First(all, func(c *corev1.PodCondition) bool { return c.Type == set.Type }); at != nil {
		*at = set
		return all
	}
	return append(all, set)
}

// putCondition puts the condition, if there is one, in the place of the one of its type.
func putCondition(pod *corev1.Pod, set *corev1.PodCondition) {
	if set != nil {
		pod.Status.Conditions = WithCondition(pod.Status.Conditions, *set)
	}
}
