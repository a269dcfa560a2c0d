package e2e

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lists records the auxiliary containers of the workload.
func (j *judge) lists(of metav1.Object) {
	for name := range strings.SplitSeq(of.GetAnnotations()[auxiliaryList], ",") {
		if name = strings.TrimSpace(name); name != "" {
			if j.listed[called(of)] == nil {
				j.listed[called(of)] = map[string]bool{}
			}
			j.listed[called(of)][name] = true
		}
	}
}

// awaited returns the spec without the auxiliary containers of the pod.
func (j *judge) awaited(pod *corev1.Pod, spec corev1.PodSpec) corev1.PodSpec {
	listed := j.listed[j.workloadOf(pod)]
	spec.Containers = slices.DeleteFunc(slices.Clone(spec.Containers), func(c corev1.Container) bool { return listed[c.Name] })
	return spec
}

// arrival checks that a pod that comes to a ReplicaSet or revision has all images of its template. If the pod is Ready, it is counted there
// as updated and available. So containers that stopped while it served must run their new images as well.
func (j *judge) arrival(e event, pod *corev1.Pod, at string, template corev1.PodSpec) {
	if before := j.owners[pod.UID]; before == "" || before == placeOf(pod) {
		return
	}
	if !hasImages(pod, template) {
		j.violation(e, "comes to %s with images %v instead of %v", at, imagesOf(pod.Spec), imagesOf(template))
	}
	listed, wanted := j.listed[j.workloadOf(pod)], imagesOf(pod.Spec)
	for _, status := range pod.Status.ContainerStatuses {
		stops := j.serving[pod.UID] || listed[status.Name]
		if ready(pod) && stops && plainName(status.Image) != plainName(wanted[status.Name]) {
			j.violation(e, "comes to %s while %s still runs %s", at, status.Name, status.Image)
		}
	}
}
