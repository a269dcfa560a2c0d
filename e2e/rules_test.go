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

// rules checks an annotation that changes in place because the workload lists it.
func rules(t *testing.T) {
	together(t, map[string]func(*testing.T){"listed": noteListed})
}

// annotateTemplate changes an annotation of the template, and more of its spec; null removes it.
func (s *scenario) annotateTemplate(name, value, spec string) string {
	s.Helper()
	return s.patchTemplate(name, fmt.Sprintf(`"metadata":{"annotations":{%q:%s}}`, note, value), spec)
}

// patchTemplate merges fields into the template, and spec into its spec.
func (s *scenario) patchTemplate(name, fields, spec string) string {
	s.Helper()
	return s.kubectl("", "patch", ref(name), "--type=strategic", "-p", fmt.Sprintf(`{"spec":{"template":{%s,"spec":{%s}}}}`, fields, spec))
}

// toImage returns the part of a template's spec that has the application's image.
func toImage(tag string) string {
	return fmt.Sprintf(`"containers":[{"name":"app","image":%q}]`, appImage(tag))
}

// bears checks that the pods of web have that annotation; with an empty value, that they do not have it.
func (s *scenario) bears(value string) {
	s.Helper()
	for _, pod := range s.pods("web") {
		if got, has := pod.Annotations[note]; got != value || has != (value != "") {
			s.Errorf("pod %s has annotation %q, want %q", pod.Name, got, value)
		}
	}
}

func noteListed(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3))
	s.kubectl("", "annotate", "deployment/web", listAnnotation+"="+note)
	s.inPlace("web", nil, func() { s.expectIn(s.annotateTemplate("web", `"1"`, ""), "Warning:", "in place: no restart") })
	s.bears("1")
	s.inPlace("web", once, func() { s.expectIn(s.annotateTemplate("web", `"2"`, toImage("v2")), "in place: restarts app") })
	s.bears("2")
	s.inPlace("web", nil, func() { s.annotateTemplate("web", "null", "") })
	s.bears("")
	s.inPlace("web", nil, func() { s.expectIn(s.rollout("undo", "web"), "in place: no restart") })
	s.bears("2")
}
