package inplace

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where a workload is not managed and nothing of ours is left on it, none of its templates is looked at: anybody may have written them,
// and made them as large and as many as the API server takes.

func (r Rollout) untouched() bool {
	return !r.Mode.Manages() && len(r.Pull.Pullers) == 0 && r.Recorded == "" &&
		!slices.ContainsFunc(r.ReplicaSets, marked) && !slices.ContainsFunc(r.Pods, touched)
}

func (r DaemonRollout) untouched() bool {
	return !r.Mode.Manages() && len(r.Pull.Pullers) == 0 && r.Recorded == "" &&
		!slices.ContainsFunc(r.Revisions, marked) && !slices.ContainsFunc(r.Pods, touched)
}

// marked tells whether the revision has a label of ours.
func marked[R metav1.Object](revision R) bool {
	return slices.ContainsFunc([]string{LabelSettling, LabelReleased, LabelWoken, LabelBorrowed, LabelReplicas, LabelSlipped}, func(key string) bool {
		return revision.GetLabels()[key] != ""
	})
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
