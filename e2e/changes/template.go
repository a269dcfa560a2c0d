package changes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Registry serves the images of the test application.
const Registry = "127.0.0.1:5000/"

// The containers of Template. AppLabel is what its workload selects it by: whoever makes one gives it the workload's name.
const (
	App      = "app"
	Side     = "side"
	AppLabel = "app"
)

// Image is the test application's; there are v1 to v9.
func Image(tag string) string { return Registry + "app:" + tag }

// Template is the one that changes begin with.
func Template() corev1.PodTemplateSpec {
	grace, token := int64(5), false
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{AppLabel: "web", "helm.sh/chart": "web-1.0.0", "tier": "front"},
			Annotations: map[string]string{"example.com/team": "blue"},
		},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{container(App, 8080), listening(Side, 8081)},
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  &token,
		},
	}
}

// container requests a little and is ready as soon as it listens.
func container(name string, port int32) corev1.Container {
	return corev1.Container{
		Name:            name,
		Image:           Image("v1"),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
		}},
		ReadinessProbe: probe(port),
	}
}

// listening is a container beside App, on a port of its own.
func listening(name string, port int32) corev1.Container {
	beside := container(name, port)
	beside.Env = []corev1.EnvVar{{Name: "PORT", Value: fmt.Sprint(port)}, {Name: "COLOUR", Value: "red"}}
	return beside
}

func probe(port int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(port)}},
		PeriodSeconds:  1,
		TimeoutSeconds: 10, // a machine that stands still for a second is no application that fails
	}
}
