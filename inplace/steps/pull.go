package steps

import (
	corev1 "k8s.io/api/core/v1"
)

// DismissAll deletes all pullers.
func (d *Draft) DismissAll(pullers []*corev1.Pod, why string) {
	for _, puller := range pullers {
		d.Delete(puller, why)
	}
}

func (d *Draft) Delete(puller *corev1.Pod, why string) {
	if puller.DeletionTimestamp == nil {
		d.Step(DeletePuller{Pod: puller, Why: why})
	}
}
