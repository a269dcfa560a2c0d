//go:build e2e && reloader

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestReloader has Reloader itself, the program $RELOADER, edit templates as docs/how-to/configuration-reload.md says. Pods stay, each
// container restarts once for a changed ConfigMap, and it has the new value.
func TestReloader(t *testing.T) {
	for kind, of := range kindsOfWorkloads {
		t.Run(kind, func(t *testing.T) { reloaded(t, of) })
	}
}

// reloadedFrom is the annotation that Reloader changes in templates.
const reloadedFrom = "reloader.stakater.com/last-reloaded-from"

func reloaded(t *testing.T, kind kindOfWorkload) {
	s := kind.scenario(t, restarting)
	s.kubectl("", "create", "configmap", "conf", "--from-literal=colour=red")
	kind.create(s, configured)
	s.kubectl("", "annotate", ref(kind.name), "configmap.reloader.stakater.com/reload=conf", "stayput.dev/restart-annotations="+reloadedFrom)
	s.reloader()
	s.inPlace(kind.name, once, func() {
		s.kubectl("", "patch", "configmap", "conf", "--type=merge", "-p", `{"data":{"colour":"green"}}`)
		s.wait("Reloader's edit", of(kind.name, func(now workload) error {
			if now.template()[reloadedFrom] == "" {
				return errors.New("the template is as before")
			}
			return nil
		}))
	})
	for _, pod := range s.pods(kind.name) {
		if shown := s.app(pod, "version"); shown != "green" {
			t.Errorf("pod %s has the value %q", pod.Name, shown)
		}
	}
}

// reloader runs Reloader in the scenario's namespace until the test ends, and waits until it watches: until it edits another Deployment.
func (s *scenario) reloader() {
	s.Helper()
	s.kubectl("", "create", "configmap", "probe", "--from-literal=at=first")
	s.create(web(0, named("probe")))
	s.kubectl("", "annotate", "deployment/probe", "configmap.reloader.stakater.com/reload=probe")
	program := exec.Command(os.Getenv("RELOADER"), "--reload-strategy=annotations")
	program.Env = append(os.Environ(), "KUBERNETES_NAMESPACE="+s.namespace)
	said := s.beside(program)
	s.eventually("Reloader to watch ConfigMaps", func(context.Context) error {
		s.kubectl("", "patch", "configmap", "probe", "--type=merge", "-p", fmt.Sprintf(`{"data":{"at":"%d"}}`, time.Now().UnixNano()))
		if s.workload("probe").template()[reloadedFrom] != "" {
			return nil
		}
		return said()
	})
}

// app runs the test application in a pod.
func (s *scenario) app(pod *corev1.Pod, arguments ...string) string {
	s.Helper()
	return strings.TrimSpace(s.kubectl("", append([]string{"exec", pod.Name, "--", "/app"}, arguments...)...))
}

// configured uses the colour of ConfigMap conf as the version, and mounts conf in two volumes.
func configured(d *appsv1.Deployment) {
	spec := &d.Spec.Template.Spec
	from := corev1.LocalObjectReference{Name: "conf"}
	spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "VERSION", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: from, Key: "colour"}}})
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "conf", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: from}}})
	spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: "conf", MountPath: "/conf"}, corev1.VolumeMount{Name: "conf", MountPath: "/colour", SubPath: "colour"})
}

// template returns the annotations that are on the workload's template.
func (of workload) template() map[string]string {
	switch workload := of.Object.(type) {
	case *appsv1.Deployment:
		return workload.Spec.Template.Annotations
	case *appsv1.DaemonSet:
		return workload.Spec.Template.Annotations
	case *appsv1.StatefulSet:
		return workload.Spec.Template.Annotations
	}
	return nil
}
