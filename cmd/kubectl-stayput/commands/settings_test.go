package commands

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stayput/stayput/inplace"
)

// overriding returns an update of the Deployment web, whose settings override two of its namespace.
func overriding() map[string]runtime.Object {
	objects := partial("in-place", nil)
	objects[shopPath].(*corev1.Namespace).Annotations = map[string]string{
		inplace.AnnotationDrain: "5s", inplace.AnnotationAuxiliary: "log"}
	annotations := objects[webPath].(*appsv1.Deployment).Annotations
	annotations[inplace.AnnotationDrain], annotations[inplace.AnnotationSurge] = "30s", "replace"
	return objects
}

func TestSettings(t *testing.T) {
	said, code := serve(t, overriding()).run("settings", "deploy/web", "-n", "shop")
	lines := strings.Split(strings.TrimSpace(said.out), "\n")
	// A heading, two labels, and all annotations but the one for DaemonSets.
	if want := 1 + 2 + len(inplace.Annotations) - 1; len(lines) != want || code != 0 {
		t.Fatalf("exit code %d, %d lines instead of %d: %s%s", code, len(lines), want, said.out, said.err)
	}
	for _, want := range []string{"SETTING VALUE FROM INSTEAD OF", "update in-place namespace -", "kinds deployments.daemonsets default -",
		"auxiliary log namespace -", "drain 30s workload 5s of the namespace", "surge replace workload -",
		"maintenance-window none: at any time default -"} {
		if !strings.Contains(strings.Join(strings.Fields(said.out), " "), want) {
			t.Errorf("%q is missing in:\n%s", want, said.out)
		}
	}
}

func TestSettingsOfNothing(t *testing.T) {
	said, code := serve(t, overriding()).run("settings", "deploy/other", "-n", "shop")
	if code != 1 || !strings.Contains(said.err, "there is no") {
		t.Errorf("exit code %d: %s", code, said)
	}
}
