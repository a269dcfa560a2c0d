//go:build e2e && bench

package e2e

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podEdit is what an update gives the application's container.
type podEdit interface {
	// fields are the container's, as a strategic merge patch has them.
	fields() string
	// asked says whether the pod's spec has it.
	asked(*corev1.Pod) bool
	// carriedOut says whether the pod's kubelet has given it to the container, which before was another one or the same.
	carriedOut(pod *corev1.Pod, before incarnation) bool
}

// done says whether the pod has got what the edit gives, and its containers are ready.
func done(e podEdit, pod *corev1.Pod, before incarnation) bool {
	condition := conditionOf(pod, corev1.ContainersReady)
	return e.asked(pod) && e.carriedOut(pod, before) && condition != nil && condition.Status == corev1.ConditionTrue
}

// patchOf gives the container of one pod what the edit gives.
func patchOf(e podEdit) []byte {
	return fmt.Appendf(nil, `{"spec":{"containers":[{"name":"app",%s}]}}`, e.fields())
}

// newImage is a version of the test application, for which the container restarts.
type newImage string

// nextImage is v2, v3 and so on.
func nextImage(round int) podEdit { return newImage(fmt.Sprintf("v%d", round+2)) }

func (i newImage) fields() string { return fmt.Sprintf(`"image":%q`, appImage(string(i))) }

func (i newImage) asked(pod *corev1.Pod) bool {
	return imagesOf(pod.Spec)["app"] == appImage(string(i))
}

func (i newImage) carriedOut(pod *corev1.Pod, before incarnation) bool {
	return incarnationOf(pod) != before
}

// newCPU is a request, for which the container goes on.
type newCPU string

// moreCPU is a little more each time than the 10m that the pods begin with.
func moreCPU(round int) podEdit { return newCPU(fmt.Sprintf("%dm", 15+5*round)) }

func (c newCPU) fields() string { return fmt.Sprintf(`"resources":{"requests":{"cpu":%q}}`, string(c)) }

func (c newCPU) asked(pod *corev1.Pod) bool {
	return pod.Spec.Containers[0].Resources.Requests.Cpu().Equal(resource.MustParse(string(c)))
}

func (c newCPU) carriedOut(pod *corev1.Pod, _ incarnation) bool {
	return unsized(pod, string(c)) == nil
}
