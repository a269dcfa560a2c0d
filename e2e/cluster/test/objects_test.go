package test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// image returns a version of the test application in the cluster's registry.
func image(tag string) string { return "127.0.0.1:5000/app:" + tag }

// podSpec runs the test application with the environment env ("NAME", "value", ...). It ends as soon as it is told to.
func podSpec(tag string, env ...string) corev1.PodSpec {
	var variables []corev1.EnvVar
	for i := 0; i < len(env); i += 2 {
		variables = append(variables, corev1.EnvVar{Name: env[i], Value: env[i+1]})
	}
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name:  "app",
		Image: image(tag),
		Env:   variables,
		Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)}},
			PeriodSeconds: 1,
		},
	}}}
}

func pod(namespace, name string, spec corev1.PodSpec) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       spec,
	}
}

func template(name string, spec corev1.PodSpec) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}, Spec: spec}
}

func deployment(namespace, name string, replicas int32, spec corev1.PodSpec) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name, spec),
		},
	}
}

func daemonSet(namespace, name string, spec corev1.PodSpec) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name, spec),
		},
	}
}

// service forwards port to port 8080 of the pods that are called name.
func service(namespace, name string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Port: port, TargetPort: intstr.FromInt32(8080)}},
		},
	}
}

func awaitPod(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	eventually(t, "pod "+pod.Name+" is Ready", func(ctx context.Context) (bool, string) {
		if err := fetch(ctx, pod); err != nil {
			return false, err.Error()
		}
		return isReady(pod), describe(pod)
	})
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func describe(pod *corev1.Pod) string {
	return fmt.Sprintf("phase %s, containers %+v, conditions %+v",
		pod.Status.Phase, pod.Status.ContainerStatuses, pod.Status.Conditions)
}

func awaitDeployment(t *testing.T, deployment *appsv1.Deployment) {
	t.Helper()
	want := *deployment.Spec.Replicas
	eventually(t, "deployment "+deployment.Name+" is available", func(ctx context.Context) (bool, string) {
		if err := fetch(ctx, deployment); err != nil {
			return false, err.Error()
		}
		status := deployment.Status
		current := status.ObservedGeneration == deployment.Generation && status.UpdatedReplicas == want
		return current && status.AvailableReplicas == want && status.Replicas == want, fmt.Sprintf("%+v", status)
	})
}

func awaitDaemonSet(t *testing.T, set *appsv1.DaemonSet, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("daemon set %s is available on %d nodes", set.Name, want), func(ctx context.Context) (bool, string) {
		if err := fetch(ctx, set); err != nil {
			return false, err.Error()
		}
		status := set.Status
		current := status.ObservedGeneration == set.Generation
		return current && int(status.NumberAvailable) == want && int(status.DesiredNumberScheduled) == want, fmt.Sprintf("%+v", status)
	})
}
