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

// rules checks annotations that change in place because Deployments or DaemonSets list them.
func rules(t *testing.T) {
	scenarios := map[string]func(*testing.T){}
	for kind, install := range bothKinds {
		for name, scenario := range map[string]func(*stage, string){
			"key":        noteByKey,
			"prefix":     noteByPrefix,
			"not listed": noteUnlisted,
			"bad list":   listsRefused,
		} {
			scenarios[kind+", "+name] = func(t *testing.T) {
				s := newStage(t, labelled)
				scenario(s, install(s))
			}
		}
		scenarios[kind+", taken off half-way"] = func(t *testing.T) {
			s := newStage(t, labelled)
			listTakenOff(s, install(s, slow))
		}
	}
	together(t, lengthy(scenarios, "Deployment, prefix", "DaemonSet, key", "DaemonSet, prefix", "DaemonSet, not listed", "DaemonSet, bad list",
		"DaemonSet, taken off half-way", "Deployment, taken off half-way"))
}

// bothKinds has, by kind, a function that creates a workload of three pods and returns its name.
var bothKinds = map[string]func(*stage, ...knob) string{
	"Deployment": func(s *stage, knobs ...knob) string {
		s.create(web(3, knobs...))
		return "web"
	},
	"DaemonSet": func(s *stage, knobs ...knob) string {
		s.Cleanup(s.nativeIsCalm)
		s.install(agent(allTemplated(knobs)...))
		return agents
	},
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

// noteByPrefix checks that the list may come in the same edit as the change, and that it stays when the change is undone.
func noteByPrefix(s *stage, name string) {
	s.inPlace(name, nil, func() {
		s.expectIn(s.patch(name, fmt.Sprintf(
			`{"metadata":{"annotations":{%q:"other, example.com/*"}},"spec":{"template":{"metadata":{"annotations":{%q:"1"}}}}}`,
			listAnnotation, note)), "in place: no restart")
	})
	s.bears(name, "1")
	s.inPlace(name, nil, func() { s.expectIn(s.rollout("undo", name), "in place: no restart") }) // before the edit there was no list
	s.bears(name, "")
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

// listTakenOff checks that the workload's present list decides about the pods that are not updated yet.
func listTakenOff(s *stage, name string) {
	s.list(name, note)
	s.begin("in place", inPlace)
	s.annotateTemplate(name, `"1"`, toImage("v2"))
	s.reaches(name, threeway)
	s.begin("native", recreated)
	s.kubectl("", "annotate", ref(name), listAnnotation+"-")
	s.completes(name)
	s.runs(name, "v2")
	s.bears(name, "1")
	kind := "Deployment"
	if isDaemonSet(name) {
		kind = "DaemonSet"
	}
	s.reported(kind, "InPlaceUpdateFellBack")
}
