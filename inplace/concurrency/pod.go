package concurrency

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

const (
	// Patience is for how long a pod counts at most after Stayput has taken it out of service, besides its grace period. It is the default of
	// progressDeadlineSeconds.
	Patience = 10 * time.Minute
	// LongestGrace is how much of its grace period counts: users may choose one of years.
	LongestGrace = time.Hour
)

// Pod is what limits distinguish of a pod.
type Pod struct {
	UID             types.UID
	Namespace, Node string
	// Labels are those of its node.
	Labels map[string]string
	// Slow: the pod has been out of service for longer than SlowAfter.
	Slow bool
}

// SlowAfter is after what time a pod that is out of service leaves room for others, as far as Load is concerned: it takes that long by
// itself, or does not come back. When it comes back, it counts as having been out for that long.
const SlowAfter = time.Minute

// IsSlow reports whether a pod that is out of service has been for longer than SlowAfter.
func IsSlow(pod *corev1.Pod, now time.Time) bool { return now.Sub(readiness.OutSince(pod)) > SlowAfter }

// PodOf returns the pod as limits see it, given its node; nil if that is not known.
func PodOf(pod *corev1.Pod, node *corev1.Node) Pod {
	seen := Pod{UID: pod.UID, Namespace: pod.Namespace, Node: pod.Spec.NodeName}
	if node != nil {
		seen.Labels = node.Labels
	}
	return seen
}

// MayCount reports whether Counts may hold for the pod as it is, at some moment. So it can be indexed.
func MayCount(pod *corev1.Pod) bool { return counts(pod) && readiness.Restarting(pod, time.Time{}) }

// Counts reports whether Stayput has the pod out of service.
func Counts(pod *corev1.Pod, now time.Time) bool {
	patience := Patience + min(LongestGrace, readiness.GracePeriod(pod))
	return counts(pod) && readiness.Restarting(pod, now) && now.Sub(readiness.OutSince(pod)) < patience
}

// counts reports whether the pod is one that counts when it is out of service.
func counts(pod *corev1.Pod) bool {
	return readiness.Live(pod) && pod.Annotations[inplace.AnnotationSurgePod] == ""
}

// Disrupted returns the pod that the step takes out of service and that needs a permission for it; nil if there is none.
func Disrupted(step steps.Step, now time.Time) *corev1.Pod {
	if pod := steps.Disrupted(step); pod != nil && needsPermission(pod, now) {
		return pod
	}
	return nil
}

// needsPermission reports whether the pod serves, and would not as soon as it restarts.
func needsPermission(pod *corev1.Pod, now time.Time) bool {
	out, _ := readiness.TakenOut(pod, now)
	return counts(pod) && !out && apps.IsTrue(pod, corev1.PodReady)
}
