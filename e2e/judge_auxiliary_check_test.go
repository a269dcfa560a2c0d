package e2e

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// beside gives the pod a second container with this image in its spec, and the image runs in its status.
func beside(pod *corev1.Pod, image, runs string) *corev1.Pod {
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "side", Image: image})
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "side", Image: runs}}
	return pod
}

// withSideOf adds this container with the application's version.
func withSideOf(template *corev1.PodSpec) {
	template.Containers = append(template.Containers, corev1.Container{Name: "side", Image: template.Containers[0].Image})
}

func TestJudgeOfAuxiliaryContainers(t *testing.T) {
	for name, c := range map[string]struct {
		list        string
		image, runs string
		found       string
	}{
		"it restarts first":                {"side", "v2", "v2", ""},
		"the pod moves too early":          {"side", "v2", "v1", "still runs v1"},
		"it is waited for":                 {"ghost", "v2", "v2", "and was in service"},
		"it has something else in the end": {"side", "v3", "v3", "comes to new with images"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun()
			for _, e := range s.events {
				switch object := e.object.(type) {
				case *appsv1.Deployment:
					object.Annotations = map[string]string{auxiliaryList: c.list}
					withSideOf(&object.Spec.Template.Spec)
				case *appsv1.ReplicaSet:
					withSideOf(&object.Spec.Template.Spec)
				case *corev1.Pod:
					beside(object, "v1", "v1")
				}
			}
			s.tell(watch.Modified, beside(aPod("p1", "old", "v1", true), c.image, "v1"))
			s.tell(watch.Modified, beside(takesOut(aPod("p1", "old", "v1", true)), c.image, c.runs))
			s.tell(watch.Modified, beside(aPod("p1", "new", "v2", true), c.image, c.runs))
			decision := s.decision()
			if c.found == "" && decision != "" || !strings.Contains(decision, c.found) {
				t.Errorf("found %q, want %q", decision, c.found)
			}
		})
	}
}
