package changes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Case is a change of a pod template, named in users' words.
type Case struct {
	// Name is the change. It is unique.
	Name string
	// Before changes Template before the case begins. It may be nil.
	Before func(*corev1.PodTemplateSpec)
	// Edit makes the change. Without Before it may begin with the result of other cases, and has to change something all the same.
	Edit func(*corev1.PodTemplateSpec)
	// Annotations are those of the workload.
	Annotations map[string]string
	// Flags are the flags of the managers.
	Flags []string
	// Decision is the decision in kubectl's warning and in the annotation stayput.dev/decision.
	Decision string
	// Aside is what kubectl prints besides the decision. It may be empty.
	Aside string
	// Restarts are the containers that restart in running pods. It is empty where the pods are recreated.
	Restarts []string
}

// inPlace begins the decisions about changes that running pods take.
const inPlace = "in place"

// InPlace reports whether running pods take the change.
func (c Case) InPlace() bool { return strings.HasPrefix(c.Decision, inPlace+": ") }

// alone reports whether the case needs a workload or managers of its own.
func (c Case) alone() bool {
	return c.Before != nil || len(c.Annotations) > 0 || len(c.Flags) > 0
}

// Template returns the template that the case begins with.
func (c Case) Template() corev1.PodTemplateSpec {
	template := Template()
	if c.Before != nil {
		c.Before(&template)
	}
	return template
}

// Scenario is a workload whose template is changed several times.
type Scenario struct {
	Name string
	// Cases are the changes, in their order. There is more than one only where they need the same workload and the same managers.
	Cases []Case
}

// longestScenario is the maximum number of changes of a scenario, so that scenarios that run in parallel take about the same time.
const longestScenario = 6

// Scenarios returns the scenarios of the whole table. Cases that recreate pods are not in a scenario with cases in place, so that the pods
// of the latter exist until its end.
func Scenarios() []Scenario {
	var all []Scenario
	for _, c := range Table {
		if c.alone() {
			all = append(all, Scenario{c.Name, []Case{c}})
		}
	}
	all = append(all, together(inPlace, Case.InPlace)...)
	return append(all, together("recreated", func(c Case) bool { return !c.InPlace() })...)
}

// together returns the scenarios of the cases that share a workload.
func together(name string, which func(Case) bool) []Scenario {
	shared := slices.DeleteFunc(slices.Clone(Table), func(c Case) bool { return c.alone() || !which(c) })
	var all []Scenario
	for chunk := range slices.Chunk(shared, longestScenario) {
		all = append(all, Scenario{fmt.Sprintf("%s %d", name, len(all)+1), chunk})
	}
	return all
}

// Template returns the template that the scenario's first case begins with.
func (s Scenario) Template() corev1.PodTemplateSpec { return s.Cases[0].Template() }

// InPlace reports whether running pods take the changes of the scenario.
func (s Scenario) InPlace() bool { return s.Cases[0].InPlace() }

// Flags returns the managers' flags that the scenario needs.
func (s Scenario) Flags() []string { return s.Cases[0].Flags }
