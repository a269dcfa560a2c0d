package inplace

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestDigests: values that differ in any way have different digests, also where their texts could run together.
func TestDigests(t *testing.T) {
	type object = map[string]any
	type list = []any
	seen := map[string]any{}
	values := list{nil, true, false, "", "true", "1", int64(1), 1.0, json.Number("1"), json.Number("1e400"), list{}, object{},
		list{"a", "b"}, list{"ab"}, list{list{"a"}, "b"}, list{list{"a", "b"}}, object{"a": "b"}, object{"a": nil}, object{"ab": ""}, object{"a": "", "b": ""},
		object{"a": object{"b": ""}}, object{"a": object{}, "b": ""}, list{int64(0)}, list{0.0}}
	for _, value := range values {
		sum := sha256.New()
		writeTo(sum, value)
		key := string(sum.Sum(nil))
		if other, known := seen[key]; known {
			t.Errorf("%#v has the digest of %#v", value, other)
		}
		seen[key] = value
	}
}

func TestFindingsAreFoundOnceAndForgotten(t *testing.T) {
	asked, f := 0, findings[string, int]{}
	ask := func(text string, size int) {
		f.of(text, size, func() int { asked++; return asked })
	}
	ask("kept", 1)
	ask("kept", 1)
	if asked != 1 {
		t.Fatalf("it was found %d times", asked)
	}
	for i := range 10 * mostFound / longestFound {
		ask(fmt.Sprint(i), longestFound)
		ask("kept", 1) // asked for all the time
	}
	if before := asked; before != 1+10*mostFound/longestFound {
		t.Errorf("%d were found", before)
	}
	if held := (len(f.lately) + len(f.before)) * longestFound; held > 3*mostFound {
		t.Errorf("%d bytes are remembered", held)
	}
	before := asked
	ask(strings.Repeat("x", 10), longestFound+1)
	ask(strings.Repeat("x", 10), longestFound+1)
	if asked != before+2 {
		t.Error("what is too long is remembered")
	}
}

// TestFindingsAreNobodysToChange: who changes what he got changes nothing for others.
func TestFindingsAreNobodysToChange(t *testing.T) {
	template := edited(t)
	template.Typed().Spec.Containers[0].Image = "mine"
	template.Typed().Spec.Containers[0].Image = "mine"
	if image := template.Typed().Spec.Containers[0].Image; image != "app:1" {
		t.Errorf("the template's image is %s", image)
	}
	to := edited(t, edits{newImage: `"app:2"`, "/spec/hostNetwork": "true"})
	first := Compare(template, to, Rules{})
	_ = append(first.Reasons, Reason{Message: "mine"})
	if cap(first.Reasons) != len(first.Reasons) || cap(first.Containers) != len(first.Containers) {
		t.Error("whoever appends to what was found writes into what others have")
	}
}

func TestRulesTellComparisonsApart(t *testing.T) {
	with := func(value string) Template {
		template, err := ParseTemplate([]byte(`{"metadata":{"annotations":{"a":"` + value + `"}},"spec":{"containers":[{"name":"app","image":"v1"}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		return template
	}
	if Compare(with("1"), with("2"), Rules{}).InPlace() || !Compare(with("1"), with("2"), Rules{Annotations: []string{"a"}}).InPlace() {
		t.Error("what is found by one set of rules is taken for another's")
	}
}
