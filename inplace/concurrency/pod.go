package concurrency

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
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
	UID  types.UID
	Node string
	// Labels are those of its node.
	Labels map[string]string
}

// PodOf returns the pod as limits see it, given its node; nil if that is not known.
func PodOf(pod *corev1.Pod, node *corev1.Node) Pod {
	seen := Pod{UID: pod.UID, Node: pod.Spec.NodeName}
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

// NeedsPermission reports whether the pod serves, and would not as soon as it restarts.
func NeedsPermission(pod *corev1.Pod, now time.Time) bool {
	out, _ := readiness.TakenOut(pod, now)
	return counts(pod) && !out && apps.IsTrue(pod, corev1.PodReady)
}
