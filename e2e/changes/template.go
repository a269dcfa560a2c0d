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

// The containers of Template, and the label by which a workload selects its pods: its value is the name of the workload.
const (
	App      = "app"
	Side     = "side"
	AppLabel = "app"
)

// Image returns a reference to the test application; there are v1 to v9.
func Image(tag string) string { return Registry + "app:" + tag }

// Template returns the template that changes begin with.
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

// container requests few resources, and is ready as soon as it listens.
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

// listening returns a container beside App, with its own port.
func listening(name string, port int32) corev1.Container {
	beside := container(name, port)
	beside.Env = []corev1.EnvVar{{Name: "PORT", Value: fmt.Sprint(port)}, {Name: "COLOUR", Value: "red"}}
	return beside
}

func probe(port int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(port)}},
		PeriodSeconds:  1,
		TimeoutSeconds: 10, // an application on a machine that stalls for a second has not failed
	}
}
