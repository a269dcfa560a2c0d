package inplace

import (
	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
)

// PodOperations returns the operations that bring a live pod of template `from` to template `to`; c is their comparison and
// must be InPlace. They touch only what differs between the templates, never what admission put into the pod, nor
// pod-template-hash.
func (c Change) PodOperations(pod *corev1.Pod, from, to Template) []jsonpatch.Operation {
	return nil
}
