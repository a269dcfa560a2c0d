//go:build e2e

package e2e

import (
	"fmt"
	"testing"
)

const (
	listAnnotation = "stayput.dev/in-place-annotations"
	note           = "example.com/note"
)

// rules checks annotations that change in place because workloads list them.
func rules(t *testing.T) {
	scenarios := map[string]func(*testing.T){}
	for name, scenario := range map[string]func(*stage, string){
		"key":        noteByKey,
		"not listed": noteUnlisted,
		"bad list":   listsRefused,
	} {
		scenarios[name] = func(t *testing.T) {
			s := newStage(t, labelled)
			s.create(web(3))
			scenario(s, "web")
		}
	}
	together(t, scenarios)
}

// list sets the workload's list of annotations that may change in place.
func (s *stage) list(name, entries string) {
	s.Helper()
	s.kubectl("", "annotate", ref(name), listAnnotation+"="+entries, "--overwrite")
}

// annotateTemplate changes an annotation of the template, and more of its spec; null removes it.
func (s *stage) annotateTemplate(name, value, spec string) string {
	s.Helper()
	return s.patchTemplate(name, fmt.Sprintf(`"metadata":{"annotations":{%q:%s}}`, note, value), spec)
}

// patchTemplate merges fields into the template, and spec into its spec.
func (s *stage) patchTemplate(name, fields, spec string) string {
	s.Helper()
	return s.kubectl("", "patch", ref(name), "--type=strategic", "-p", fmt.Sprintf(`{"spec":{"template":{%s,"spec":{%s}}}}`, fields, spec))
}

// toImage returns the part of a template's spec that has the application's image.
func toImage(tag string) string {
	return fmt.Sprintf(`"containers":[{"name":"app","image":%q}]`, appImage(tag))
}

// bears checks that the pods have that annotation; with an empty value, that they do not have it.
func (s *stage) bears(name, value string) {
	s.Helper()
	for _, pod := range s.pods(name) {
		if got, has := pod.Annotations[note]; got != value || has != (value != "") {
			s.Errorf("pod %s has annotation %q, want %q", pod.Name, got, value)
		}
	}
}

func noteByKey(s *stage, name string) {
	s.list(name, note)
	s.inPlace(name, nil, func() { s.expectIn(s.annotateTemplate(name, `"1"`, ""), "Warning:", "in place: no restart") })
	s.bears(name, "1")
	s.inPlace(name, once, func() { s.expectIn(s.annotateTemplate(name, `"2"`, toImage("v2")), "in place: restarts app") })
	s.bears(name, "2")
	s.inPlace(name, nil, func() { s.annotateTemplate(name, "null", "") })
	s.bears(name, "")
	s.inPlace(name, nil, func() { s.expectIn(s.rollout("undo", name), "in place: no restart") })
	s.bears(name, "2")
}

func noteUnlisted(s *stage, name string) {
	s.list(name, "example.com/other,example.org/*")
	s.recreated(name, func() {
		s.expectIn(s.annotateTemplate(name, `"1"`, ""), "Warning:", "recreate: annotation "+note+" added")
	})
	s.inPlace(name, once, func() { s.setImage(name, "app=v2") })
	s.bears(name, "1")
}

func listsRefused(s *stage, name string) {
	s.begin("refused", frozenBut("none"))
	for _, bad := range []string{"", "a b", "note,", "*", "example.com/n*", "stayput.dev/decision", "kubectl.kubernetes.io/restartedAt",
		"kubectl.kubernetes.io/*", "container.apparmor.security.beta.kubernetes.io/app", "kubernetes.io/config.mirror"} {
		s.expectIn(s.refused("annotate", ref(name), listAnnotation+"="+bad, "--overwrite"), listAnnotation)
	}
	s.list(name, "note, example.com/*")
}
