package edit

import (
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// TestFindingsAreNotToBeChanged: a caller that changes a result does not change it for other callers.
func TestFindingsAreNotToBeChanged(t *testing.T) {
	template := edited(t)
	template.Typed().Spec.Containers[0].Image = "mine"
	template.Typed().Spec.Containers[0].Image = "mine"
	if image := template.Typed().Spec.Containers[0].Image; image != "app:1" {
		t.Errorf("the template's image is %s", image)
	}
	to := edited(t, edits{newImage: `"app:2"`, "/spec/hostNetwork": "true"})
	first := Compare(template, to, inplace.Rules{})
	_ = append(first.Reasons, inplace.Reason{Message: "mine"})
	if cap(first.Reasons) != len(first.Reasons) || cap(first.Containers) != len(first.Containers) {
		t.Error("a caller that appends to a list of the result writes into the list of other callers")
	}
}

func TestRulesTellComparisonsApart(t *testing.T) {
	with := func(value string) apps.Template {
		template, err := apps.ParseTemplate([]byte(`{"metadata":{"annotations":{"a":"` + value +
			`"}},"spec":{"containers":[{"name":"app","image":"v1"}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		return template
	}
	if Compare(with("1"), with("2"), inplace.Rules{}).InPlace() ||
		!Compare(with("1"), with("2"), inplace.Rules{Annotations: []string{"a"}}).InPlace() {
		t.Error("the result for one set of rules is used for another")
	}
}
