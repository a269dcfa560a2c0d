package changes

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
)

// TestDecisions compares the decisions of docs/reference/changes.md with those of inplace/edit, each change alone and after the changes
// that it follows in the end-to-end suite. So the page is tested without a cluster as well.
func TestDecisions(t *testing.T) {
	scenarios := Scenarios()
	for _, c := range Table {
		scenarios = append(scenarios, Scenario{"alone", []Case{c}})
	}
	for _, scenario := range scenarios {
		template := scenario.Template()
		for _, c := range scenario.Cases {
			before := parsed(t, template)
			c.Edit(&template)
			change := edit.Compare(before, parsed(t, template), rulesOf(c))
			if said := change.String(); said != c.Decision {
				t.Errorf("%s, %s:\n got %s\nwant %s", scenario.Name, c.Name, said, c.Decision)
			}
			if aside := change.VariablesRead + change.InitContainersNotRerun; aside != c.Aside {
				t.Errorf("%s, %s: besides %q is said instead of %q", scenario.Name, c.Name, aside, c.Aside)
			}
			var restarts []string
			for container := range change.Containers.Restarting() {
				restarts = append(restarts, container.Container)
			}
			if c.InPlace() && !slices.Equal(restarts, c.Restarts) {
				t.Errorf("%s, %s: %v restart instead of %v", scenario.Name, c.Name, restarts, c.Restarts)
			}
		}
	}
}

// rulesOf returns the rules by which the managers decide about the case.
func rulesOf(c Case) inplace.Rules {
	var rules inplace.Rules
	for _, flag := range c.Flags {
		if keys, is := strings.CutPrefix(flag, "--in-place-annotations="); is {
			rules.Annotations = strings.Split(keys, ",")
		}
	}
	return rules.For(c.Annotations)
}

func parsed(t *testing.T, typed corev1.PodTemplateSpec) apps.Template {
	t.Helper()
	raw, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	template, err := apps.ParseTemplate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// TestTable checks that the name of every case is unique, that every case says what happens to the pods, and that it is in exactly one
// scenario.
func TestTable(t *testing.T) {
	seen := map[string]int{}
	for _, scenario := range Scenarios() {
		for _, c := range scenario.Cases {
			seen[c.Name]++
		}
	}
	for _, c := range Table {
		if seen[c.Name] != 1 {
			t.Errorf("%s is in %d scenarios", c.Name, seen[c.Name])
		}
		if recreates := strings.HasPrefix(c.Decision, "recreate: "); recreates == c.InPlace() || recreates && len(c.Restarts) > 0 {
			t.Errorf("%s: neither in place nor recreated: %s", c.Name, c.Decision)
		}
	}
}
