package readiness

import (
	"slices"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
)

// ReasonUpdating is the reason of the Ready of a pod that Stayput has taken out of service: see the package's comment.
const ReasonUpdating = "UpdatingInPlace"

// messageOut is the message of such a Ready. Users see it in kubectl describe.
const messageOut = "Stayput keeps the pod out of service before its containers restart, at most until "

// Out reports whether Stayput has taken the pod out of service.
func Out(pod *corev1.Pod) bool {
	ready := apps.Condition(pod, corev1.PodReady)
	return ready != nil && ready.Status == corev1.ConditionFalse && ready.Reason == ReasonUpdating
}

// OutAt returns when the pod, which is Out, was taken out of service.
func OutAt(pod *corev1.Pod) time.Time {
	return apps.Condition(pod, corev1.PodReady).LastTransitionTime.Time
}

// TakenOutUntil returns the Ready that takes the pod out of service. If the pod is not patched before that time, its kubelet puts it back.
func TakenOutUntil(pod *corev1.Pod, until, now time.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: ReasonUpdating,
		Message: messageOut + until.UTC().Format(time.RFC3339), LastTransitionTime: metav1.NewTime(now), ObservedGeneration: pod.Generation}
}

// PutBack returns the Ready that the pod's kubelet would report: GeneratePodReadyCondition in pkg/kubelet/status/generate.go.
func PutBack(pod *corev1.Pod, now time.Time) corev1.PodCondition {
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now),
		ObservedGeneration: pod.Status.ObservedGeneration}
	containers := apps.Condition(pod, corev1.ContainersReady)
	switch shut := shutGates(pod); {
	case containers == nil:
		ready.Status = corev1.ConditionFalse
	case containers.Status != corev1.ConditionTrue:
		ready.Status, ready.Reason, ready.Message = containers.Status, containers.Reason, containers.Message
	case len(shut) > 0:
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, reasonGatesNotReady, strings.Join(shut, ", ")
	}
	return ready
}

// reasonGatesNotReady is ReadinessGatesNotReady in pkg/kubelet/status/generate.go.
const reasonGatesNotReady = "ReadinessGatesNotReady"

// shutGates returns the kubelet's message for each readiness gate of the pod that is not open.
func shutGates(pod *corev1.Pod) []string {
	var shut []string
	for _, gate := range pod.Spec.ReadinessGates {
		switch c := apps.Condition(pod, gate.ConditionType); {
		case c == nil:
			shut = append(shut, `corresponding condition of pod readiness gate "`+string(gate.ConditionType)+`" does not exist.`)
		case c.Status != corev1.ConditionTrue:
			shut = append(shut, `the status of pod readiness gate "`+string(gate.ConditionType)+`" is not "True", but `+string(c.Status))
		}
	}
	return shut
}

// StoredReady returns the Ready to store in place of the one in a kubelet's report that changes the old pod into the one sent; nil if it is
// to be stored as sent.
func StoredReady(old, sent *corev1.Pod, now time.Time) *corev1.PodCondition {
	was, ready := apps.Condition(old, corev1.PodReady), apps.Condition(sent, corev1.PodReady)
	if !Out(old) || ready == nil {
		return nil
	}
	if staysOut(old, sent, now) {
		return was
	}
	if ready.Status == corev1.ConditionTrue && ready.LastTransitionTime.Before(&was.LastTransitionTime) {
		next := *ready // its kubelet has never seen it go, so that it would count as available at once
		next.LastTransitionTime = metav1.NewTime(now)
		return &next
	}
	return nil
}

// staysOut reports whether the report leaves the pod out of service: it has yet to be patched, or its old containers may still run.
func staysOut(old, sent *corev1.Pod, now time.Time) bool {
	pod := *sent
	pod.Status.Conditions = WithCondition(slices.Clone(sent.Status.Conditions), *apps.Condition(old, corev1.PodReady))
	if metav1.GetControllerOfNoCopy(&pod) == nil {
		return false // its workload was deleted without it
	}
	move := MoveOf(&pod)
	if !move.PatchedSinceOut(&pod) {
		return now.Before(outUntil(&pod))
	}
	back, _ := move.MayGoBack(old, &pod, now)
	return !back
}

// outUntil returns until when the pod, which is Out, may be at most; zero if that cannot be read.
func outUntil(pod *corev1.Pod) time.Time {
	text, _ := strings.CutPrefix(apps.Condition(pod, corev1.PodReady).Message, messageOut)
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return until
}

// PatchedSinceOut reports whether containers of the pod, which is Out, were patched after it was taken out of service.
func (m Move) PatchedSinceOut(pod *corev1.Pod) bool {
	return apps.Condition(pod, corev1.PodReady).ObservedGeneration < m.Generation
}

// MayGoBack reports whether a pod that is Out may be put back into service: no old container still runs or is about to be killed, and no
// container counts as ready only because its startup probe has not answered yet. If only time is needed, it returns how long. The pod last
// is the report before, nil if it is not known.
func (m Move) MayGoBack(last, pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	if m.RestartsToResize(pod) {
		return false, 0
	}
	stopped, wait := m.Stopped(pod, now)
	if !stopped && !(m.Observed(pod) && m.OldStopped(last, pod)) {
		return false, wait
	}
	return ProvedStarted(pod, now)
}

// SetReady returns the operations that give the pod that Ready.
func SetReady(pod *corev1.Pod, ready corev1.PodCondition) []jsonpatch.Operation {
	return patches.SetConditions(pod.Status.Conditions, WithCondition(slices.Clone(pod.Status.Conditions), ready))
}

// WithCondition returns the conditions with set in the place of the one of its type.
func WithCondition(all []corev1.PodCondition, set corev1.PodCondition) []corev1.PodCondition {
	if at := apps.First(all, func(c *corev1.PodCondition) bool { return c.Type == set.Type }); at != nil {
		*at = set
		return all
	}
	return append(all, set)
}

// ServiceAccount is the name of the managers' service account in manifests/base. Users of the chart may choose another.
const ServiceAccount = "stayput"

// ByKubelet reports whether the user is the kubelet of that node.
func ByKubelet(user string, groups []string, node string) bool {
	return node != "" && user == "system:node:"+node && slices.Contains(groups, "system:nodes")
}
