package podstate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
)

// TestTemplatesAskForNoRestart: new pods have the annotations of their template. Each would restart as soon as it runs.
func TestTemplatesAskForNoRestart(t *testing.T) {
	asks := map[string]string{inplace.AnnotationRestartContainers: "app"}
	for name, template := range map[string]map[string]string{
		"asked for by a user": nil,
		"of its template":     asks,
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: asks}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
			marked := podstate.MarkedPod{Pod: pod, PodRevision: podstate.PodRevision{TemplateAnnotations: template}}
			asking := podstate.AskingOf(&podstate.State{Work: podstate.Work{MarkedPod: marked}})
			if may, want := asking.MayBegin(podstate.Circumstances{}), template == nil; may != want {
				t.Errorf("the restart may begin: %t, want %t", may, want)
			}
			if _, answers := asking.Answer(podstate.Circumstances{}); answers {
				t.Error("the pod gets an answer")
			}
		})
	}
}
