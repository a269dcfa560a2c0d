package commands

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stayput/stayput/inplace"
)

const podPath = "/api/v1/namespaces/shop/pods/a"

// merges stores the merge patch.
func (s *server) merges(path string, patch []byte) {
	next := reflect.New(reflect.TypeOf(s.objects[path]).Elem()).Interface().(runtime.Object)
	if err := json.Unmarshal(s.patched(s.objects[path], patch), next); err != nil {
		s.Error(err)
	}
	s.objects[path] = next
}

// TestRestartOfAWorkload: the template is written only where Stayput has answered that the containers restart in place.
func TestRestartOfAWorkload(t *testing.T) {
	for name, test := range map[string]struct {
		warning string
		out     string
		err     string
		written bool
	}{
		"in place": {"stayput: in place: restarts app", "deployment/web: restarts app\n", "", true},
		"recreate": {"stayput: recreate: image x of container app has no other name", "",
			"deployment/web: pods would be replaced: image x of container app has no other name", false},
		"no answer": {"", "", "deployment/web: pods would be replaced, as there is no answer from Stayput", false},
	} {
		s := serve(t, map[string]runtime.Object{shopPath: shop("in-place"), webPath: web()})
		s.write = s.merges
		if test.warning != "" {
			s.warnings = []string{test.warning}
		}
		said, code := s.run("restart", "deploy/web", "-c", "app", "-n", "shop", "--wait=false")
		at := s.objects[webPath].(*appsv1.Deployment).Spec.Template.Annotations["restart.stayput.dev/app"]
		_, err := time.Parse(time.RFC3339, at)
		if said.out != test.out || !strings.Contains(said.err, test.err) || (code == 0) != test.written || (err == nil) != test.written {
			t.Errorf("%s: exit code %d, %q %q, annotation %q", name, code, said.out, said.err, at)
		}
	}
}

// TestRestartOfAPod: the request has a deadline, and its result decides the exit code.
func TestRestartOfAPod(t *testing.T) {
	for name, test := range map[string]struct {
		label     string
		container string
		pending   string
		// becomes changes the pod after the request.
		becomes  func(*corev1.Pod)
		out, err string
	}{
		"restarted": {"in-place", "app", "", func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{inplace.AnnotationRestarted: "restarted app=2030-01-01T00:00:00Z"}
			pod.Status.ContainerStatuses[0].ContainerID = "another"
		}, "pod/a: restarted app=2030-01-01T00:00:00Z\n", ""},
		"refused": {"in-place", "app", "", func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{inplace.AnnotationRestarted: "refused app: no"}
		}, "until", "pod/a: refused: app: no"},
		"late": {"in-place", "app", "", nil, "until", "pod/a: not over after 2s"},
		"waiting": {"in-place", "app", "", func(pod *corev1.Pod) {
			pod.Annotations[inplace.AnnotationRestarted] = "waiting app: an update of the Deployment is in progress"
		}, "\npod/a: waiting app: an update of the Deployment is in progress\n", "pod/a: not over after 2s"},
		"recreated": {"in-place", "app", "", func(pod *corev1.Pod) { pod.UID, pod.Annotations = "another", nil }, "until",
			"pod/a was deleted meanwhile"},
		"no such container":   {"in-place", "ghost", "", nil, "", "pod/a has no container or sidecar ghost"},
		"asked before":        {"in-place", "app", "side", nil, "", "pod/a is to restart side already"},
		"unlabelled":          {"", "app", "", nil, "", `its label stayput.dev/update is ""`},
		"without a container": {"in-place", "", "", nil, "", "-c has no name of a container"},
	} {
		t.Run(name, func(t *testing.T) {
			one := pod("a", "old", "app:1", true)
			if test.pending != "" {
				one.Annotations = map[string]string{inplace.AnnotationRestartContainers: test.pending}
			}
			s := serve(t, map[string]runtime.Object{shopPath: shop(test.label), podPath: one})
			s.write = func(path string, patch []byte) {
				s.merges(path, patch)
				if stored := s.objects[podPath].(*corev1.Pod); test.becomes != nil && stored.Annotations[inplace.AnnotationRestartDeadline] != "" {
					test.becomes(stored)
				}
			}
			said, code := s.run("restart", "pod/a", "-c", test.container, "-n", "shop", "--timeout", "2s")
			if !strings.Contains(said.out, test.out) || !strings.Contains(said.err, test.err) || (code == 0) != (test.err == "") {
				t.Errorf("exit code %d, %q %q", code, said.out, said.err)
			}
			left := test.pending
			if strings.Contains(test.err, "not over") { // its deadline ends it
				left = test.container
			}
			if request := s.objects[podPath].(*corev1.Pod).Annotations[inplace.AnnotationRestartContainers]; request != left {
				t.Errorf("the pod has request %q", request)
			}
		})
	}
}
