//go:build e2e && bench

package e2e

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podEdit is the change that an update makes to the application's container.
type podEdit interface {
	// fields returns the fields of the container, in the form of a strategic merge patch.
	fields() string
	// asked reports whether the pod's spec has the change.
	asked(*corev1.Pod) bool
	// carriedOut reports whether the kubelet has applied the change to the container. before is the container of before the update; it may be
	// the same one.
	carriedOut(pod *corev1.Pod, before incarnation) bool
}

// done reports whether the change is applied to the pod, and its containers are ready.
func done(e podEdit, pod *corev1.Pod, before incarnation) bool {
	condition := conditionOf(pod, corev1.ContainersReady)
	return e.asked(pod) && e.carriedOut(pod, before) && condition != nil && condition.Status == corev1.ConditionTrue
}

// patchOf returns the patch that makes the change to one pod.
func patchOf(e podEdit) []byte {
	return fmt.Appendf(nil, `{"spec":{"containers":[{"name":"app",%s}]}}`, e.fields())
}

// newImage is a version of the test application. The container restarts for it.
type newImage string

// nextImage returns v2, v3 and so on.
func nextImage(round int) podEdit { return newImage(fmt.Sprintf("v%d", round+2)) }

func (i newImage) fields() string { return fmt.Sprintf(`"image":%q`, appImage(string(i))) }

func (i newImage) asked(pod *corev1.Pod) bool {
	return imagesOf(pod.Spec)["app"] == appImage(string(i))
}

func (i newImage) carriedOut(pod *corev1.Pod, before incarnation) bool {
	return incarnationOf(pod) != before
}

// newCPU is a CPU request. The container does not restart for it.
type newCPU string

// moreCPU returns a little more for each round. The pods begin with 10m.
func moreCPU(round int) podEdit { return newCPU(fmt.Sprintf("%dm", 15+5*round)) }

func (c newCPU) fields() string { return fmt.Sprintf(`"resources":{"requests":{"cpu":%q}}`, string(c)) }

func (c newCPU) asked(pod *corev1.Pod) bool {
	return pod.Spec.Containers[0].Resources.Requests.Cpu().Equal(resource.MustParse(string(c)))
}

func (c newCPU) carriedOut(pod *corev1.Pod, _ incarnation) bool {
	return unsized(pod, string(c)) == nil
}
