package commands

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

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
