package readiness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
)

// Ready = ContainersReady and all gates. A kubelet says so too, but from what it knew at its last sync: one or two seconds after a gate has
// moved, on a busy node later. The API server says so in the very write, by this rule: by itself where it can change what is written
// (manifests/ready), else by asking a manager (manifests/ready-webhook).
// It is in force where the answer to our own write shows it; nothing else depends on it.

// Writer is who writes the status of a pod, as far as that matters.
type Writer int

// The writers of pods/status.
const (
	OtherWriter   Writer = iota
	KubeletWriter        // the kubelet of the pod's own node
	OwnWriter            // Stayput
)

// UserIn is Stayput's user name where it is installed in that namespace: that of the service account of manifests/base.
func UserIn(namespace string) string { return "system:serviceaccount:" + namespace + ":stayput" }

// WriterOf tells by user name and groups who writes the status of a pod on that node; own is Stayput's user name.
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
	// MessageAhead is of a Ready that its kubelet does not know of yet. A kubelet that finds another message than its own syncs at once
	// (NeedToReconcilePodReadiness in pkg/kubelet/status/status_manager.go). With an empty one it would go on with Ready=False in its cache,
	// and take the next time that a gate closes for no change.
	MessageAhead = "Ready follows at once"
	// tooEarlyFor is how long after a start, and a period of its startup probe, a container may still be reported as started that is not.
	tooEarlyFor = 5 * time.Second
)

// StoredConditions are the conditions that are stored when the writer makes the old pod the new one. Only those of ConditionServing and Ready
// can be others than were sent, and only of pods with our gate.
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

// openedByReport is the gate that opens with a kubelet's report; nil if none does: the first of a newborn pod, whoever lives then, and the one
// that shows a patched pod to be on its way.
func openedByReport(last, pod *corev1.Pod) *corev1.PodCondition {
	reason := ReasonReopened
	switch {
	case Unopened(pod):
		reason = ReasonCreated
	case !Closed(pod) || !restartReported(last, pod):
		return nil
	}
	return &corev1.PodCondition{Type: inplace.ConditionServing, Status: corev1.ConditionTrue, Reason: reason,
		LastTransitionTime: reportedAt(pod), ObservedGeneration: pod.Generation}
}

// restartReported is the part of podstate.State.MayReopen that needs no clock, for when nobody lives: the gate was closed before our patch, which was the last,
// and not since for the next; nothing about it is unsure; and the pod is not given back.
func restartReported(last, pod *corev1.Pod) bool {
	gate, move := conditions.Condition(pod, inplace.ConditionServing), MoveOf(pod)
	unsure := false
	for _, before := range move.Containers {
		unsure = unsure || before.Unsure
	}
	closedBefore := gate.ObservedGeneration > 0 && gate.ObservedGeneration < pod.Generation
	return closedBefore && move.Generation == pod.Generation && !unsure && pod.Annotations[inplace.AnnotationSurgePod] == "" &&
		move.Observed(pod) && move.Followed(last, pod)
}

// reportedAt is the latest time that a report tells of. The API server shows no clock to policies.
func reportedAt(pod *corev1.Pod) metav1.Time {
	at := pod.CreationTimestamp
	if ready := conditions.Condition(pod, corev1.ContainersReady); ready != nil {
		at = later(at, ready.LastTransitionTime)
	}
	for status := range containerStatuses(pod) {
		if status.State.Running != nil {
			at = later(at, status.State.Running.StartedAt)
		}
	}
	return at
}

// readiness is Ready as it is to be stored; nil if as it is sent. Where containers are not ready, kubelets know by themselves.
func readiness(old, sent *corev1.Pod) *corev1.PodCondition {
	ready, containers := conditions.Condition(sent, corev1.PodReady), conditions.Condition(sent, corev1.ContainersReady)
	if ready == nil || containers == nil || containers.Status != corev1.ConditionTrue {
		return nil
	}
	next, at, shut := *ready, containers.LastTransitionTime, closedGates(sent)
	for _, gate := range gatesOf(sent) {
		at = later(at, gate.LastTransitionTime)
	}
	switch {
	case len(shut) > 0 && ready.Status == corev1.ConditionTrue:
		next.Status, next.Reason, next.Message = corev1.ConditionFalse, ReasonGatesNotReady, strings.Join(shut, ", ")
	case len(shut) == 0 && ready.Status == corev1.ConditionFalse && ready.Reason == ReasonGatesNotReady && !tooEarly(sent) && !leftToKubelet(sent):
		next.Status, next.Reason, next.Message = corev1.ConditionTrue, "", MessageAhead
	default:
		at = ready.LastTransitionTime
	}
	next.LastTransitionTime = at
	if before := conditions.Condition(old, corev1.PodReady); before != nil && before.Status == next.Status {
		next.LastTransitionTime = before.LastTransitionTime // or the pod would be younger with every word about it
	}
	return &next
}

// leftToKubelet reports whether our gate was opened while the pod's kubelet was silent. What the pod's status says of its containers is older than that.
func leftToKubelet(pod *corev1.Pod) bool {
	gate := conditions.Condition(pod, inplace.ConditionServing)
	return gate != nil && gate.Status == corev1.ConditionTrue && gate.Reason == ReasonNodeUnknown
}

// gatesOf are the conditions of the pod's readiness gates, as far as there are any.
func gatesOf(pod *corev1.Pod) []*corev1.PodCondition {
	var gates []*corev1.PodCondition
	for _, gate := range pod.Spec.ReadinessGates {
		if c := conditions.Condition(pod, gate.ConditionType); c != nil {
			gates = append(gates, c)
		}
	}
	return gates
}

// closedGates says of each gate that is not open what its kubelet says: GeneratePodReadyCondition in pkg/kubelet/status/generate.go. With
// other words it would sync, and the sync for our patch, a moment later, had to wait for the next look at the containers.
func closedGates(pod *corev1.Pod) []string {
	var shut []string
	for _, gate := range pod.Spec.ReadinessGates {
		switch c := conditions.Condition(pod, gate.ConditionType); {
		case c == nil:
			shut = append(shut, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case c.Status != corev1.ConditionTrue:
			shut = append(shut, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, c.Status))
		}
	}
	return shut
}

// tooEarly reports whether some container may have been called ready without its startup probe. Kubelets 1.35 and 1.36 take over from the
// container before that it has started (convertToAPIContainerStatuses in pkg/kubelet/kubelet_pods.go; kubernetes#141155), until the probe's
// next turn, at most a period later: then it has not, and is not ready. With a readiness probe besides, that one alone decides until then.
// Without a startup probe nothing is taken over: ready is what the readiness probe has said of this very container, or that it runs.
func tooEarly(pod *corev1.Pod) bool {
	ready := conditions.Condition(pod, corev1.ContainersReady)
	return ready == nil || slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		status := ContainerStatus(pod, c.Name)
		return c.StartupProbe != nil && status.RestartCount > 0 && status.State.Running != nil &&
			ready.LastTransitionTime.Sub(status.State.Running.StartedAt.Time) < startupKnown(c)
	})
}

// startupKnown is how long after its start what a kubelet says of the container's startup probe comes from that probe.
func startupKnown(c corev1.Container) time.Duration {
	return time.Duration(c.StartupProbe.PeriodSeconds)*time.Second + tooEarlyFor
}

func later(a, b metav1.Time) metav1.Time {
	if a.Before(&b) {
		return b
	}
	return a
}

// WithCondition puts the condition in the place of the one of its type.
func WithCondition(all []corev1.PodCondition, set corev1.PodCondition) []corev1.PodCondition {
	if at := conditions.First(all, func(c *corev1.PodCondition) bool { return c.Type == set.Type }); at != nil {
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
