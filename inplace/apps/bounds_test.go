package apps

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestDigestIsWorkedOutOnce uses templates that are too large to be remembered as a whole. Computing a digest allocates in
// proportion to the template's size. Finding a remembered one does not.
func TestDigestIsWorkedOutOnce(t *testing.T) {
	variables := make([]string, 5000)
	for i := range variables {
		variables[i] = fmt.Sprintf(`{"name":"V%d","value":"some value of it"}`, i)
	}
	raw := `{"spec":{"containers":[{"name":"app","image":"app:1","env":[` + strings.Join(variables, ",") + `]}]}}`
	var again, template Template
	for _, into := range []*Template{&template, &again} { // the same template in another version of its object
		if err := json.Unmarshal([]byte(raw), into); err != nil {
			t.Fatal(err)
		}
	}
	revision := &ControllerRevision{Data: json.RawMessage(`{"spec":{"template":` + raw + `}}`)}
	if !revision.IsOf(template) {
		t.Fatal("the revision is not of its template")
	}
	if allocations := testing.AllocsPerRun(10, func() {
		if !SameTemplate(template, again) || !revision.IsOf(again) {
			t.Error("the template differs from itself")
		}
	}); allocations > 100 {
		t.Errorf("to find the digest of %d bytes takes %.0f allocations", len(raw), allocations)
	}
}

// TestElements counts what decoding takes memory for.
func TestElements(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `"a,[{"`: 0, `"\",["`: 0, `"\\"`: 0, `[]`: 1, `[{},{}]`: 4, `{"a":["x","y"],"b":1}`: 4, `"\`: 0,
	} {
		if count := Elements([]byte(text)); count != want {
			t.Errorf("%s has %d elements, counted %d", text, want, count)
		}
	}
}

// TestDecodedTemplatesTakeBoundedMemory: a template that takes very much more memory than its text is not remembered in decoded form.
func TestDecodedTemplatesTakeBoundedMemory(t *testing.T) {
	for element, remembered := range map[string]bool{`{"name":"A_VARIABLE","value":"some value of it"}`: true, `{}`: false} {
		elements := strings.Repeat(element+",", min(mostElements/3, (longestFound-100)/(len(element)+1))) + element
		template, err := ParseTemplate([]byte(`{"spec":{"containers":[{"env":[` + elements + `]}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		if first, second := template.Decoded(), template.Decoded(); first == second != remembered {
			t.Errorf("with variables %s, remembered is not %t", element, remembered)
		}
	}
}

// TestTemplatesAreBounded: what is too large is neither decoded nor compared, but still the same as itself.
func TestTemplatesAreBounded(t *testing.T) {
	for name, list := range map[string]string{
		"text":     `"` + strings.Repeat("x", longestTemplate) + `"`,
		"elements": strings.Repeat(`"",`, mostElements) + `""`,
	} {
		var template, labelled Template
		for labels, into := range map[string]*Template{`{}`: &template, `{"pod-template-hash":"1"}`: &labelled} {
			raw := `{"metadata":{"labels":` + labels + `},"spec":{"containers":[{"name":"app","args":[` + list + `]}]}}`
			if err := json.Unmarshal([]byte(raw), into); err != nil {
				t.Fatal(err)
			}
		}
		if flaw := template.Unsupported(); flaw == nil || len(template.Decoded().Spec.Containers) > 0 {
			t.Errorf("a template with too much %s is accepted", name)
		}
		if !SameTemplate(template, labelled) {
			t.Errorf("a template with too much %s differs from itself", name)
		}
	}
}

// TestLargestTemplate: one that is as large as may be is decoded.
func TestLargestTemplate(t *testing.T) {
	most := func(list string) Template {
		template, err := ParseTemplate([]byte(`{"spec":{"containers":[{"name":"app","args":[` + list + `]}]}}`))
		if err != nil {
			t.Error(err)
		}
		return template
	}
	elements := most(`""`).elements
	if got := most(strings.Repeat(`"",`, mostElements-elements) + `""`).elements; got != mostElements {
		t.Errorf("%d elements instead of %d", got, mostElements)
	}
	text := most(`"` + strings.Repeat("x", longestTemplate-len(most(`""`).raw)) + `"`)
	if got := len(text.raw); got != longestTemplate {
		t.Errorf("%d characters instead of %d", got, longestTemplate)
	}
}

func TestCrowded(t *testing.T) {
	for _, count := range []int{MostContainers, MostContainers + 1} {
		pod := &corev1.Pod{}
		pod.Spec.Containers, pod.Spec.InitContainers = make([]corev1.Container, count-1), make([]corev1.Container, 1)
		if crowded := Crowded(pod) != ""; crowded != (count > MostContainers) {
			t.Errorf("%d containers are too many: %t", count, crowded)
		}
	}
}

// BenchmarkDigests looks for the update revision among 120 revisions of 64 KiB.
func BenchmarkDigests(b *testing.B) {
	var all []Template
	for i := range 120 {
		raw := fmt.Sprintf(`{"spec":{"containers":[{"name":"app","image":"app:%d","args":[%s"x"]}]}}`, i, strings.Repeat(`"some words",`, 5000))
		template, err := ParseTemplate([]byte(raw))
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, template)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, one := range all[1:] {
			if SameTemplate(all[0], one) {
				b.Fatal("two templates are the same")
			}
		}
	}
}
