package inplace

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where a workload is not managed and nothing of ours is left on it, none of its templates is looked at: anybody may have written them,
// and made them as large and as many as the API server takes.

func (r Rollout) untouched() bool {
	return r.Mode.leaves(r.Pull.Pullers, r.Recorded, r.Pods) && !slices.ContainsFunc(r.ReplicaSets, marked)
}

func (r DaemonRollout) untouched() bool {
	return r.Mode.leaves(r.Pull.Pullers, r.Recorded, r.Pods) && !slices.ContainsFunc(r.Revisions, marked)
}

// leaves: the mode does not manage the workload, and nothing of ours is left but perhaps on its revisions.
func (m Mode) leaves(pullers []*corev1.Pod, recorded string, pods []*corev1.Pod) bool {
	return !m.Manages() && len(pullers) == 0 && recorded == "" && !slices.ContainsFunc(pods, touched)
}

// marked tells whether the revision has a mark of ours.
func marked[R metav1.Object](revision R) bool {
	return slices.ContainsFunc(Marks, func(key string) bool { return revision.GetLabels()[key] != "" })
}

// touched tells whether we have, or may have, left something to do on the pod.
func touched(pod *corev1.Pod) bool {
	return Closed(pod) || Unopened(pod) || pod.Annotations[AnnotationMove] != "" || pod.Annotations[AnnotationBorrowed] != ""
}

// verdict of a workload that the mode does not manage.
func (m Mode) verdict() Verdict { return Verdict{Reasons: Reasons{*m.reason()}} }

// plan for one on which nothing of ours is left.
func (m Mode) plan() Plan {
	return Plan{Verdict: m.verdict(), Phase: PhaseNative, Message: m.reason().Message}
}
