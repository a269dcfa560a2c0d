package changes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Case is a change of a pod template as users would speak of it.
type Case struct {
	// Name says what changes; no other case has it.
	Name string
	// Before makes of Template the one that is changed; nil changes nothing of it.
	Before func(*corev1.PodTemplateSpec)
	// Edit makes the change. Where there is no Before it may meet what other cases have left, and has to change something all the same.
	Edit func(*corev1.PodTemplateSpec)
	// Labels and Annotations are the workload's own.
	Labels, Annotations map[string]string
	// Flags are those of the managers.
	Flags []string
	// Decision is what kubectl says of it, and the annotation stayput.dev/decision.
	Decision string
	// Aside is what kubectl says besides; empty if nothing.
	Aside string
	// Restarts are the containers that restart in running pods. Where the pods are replaced there are none to tell of.
	Restarts []string
}

// inPlace begins the verdicts about changes that running pods take.
const inPlace = "in place"

// InPlace reports whether the pods live through it.
func (c Case) InPlace() bool { return strings.HasPrefix(c.Decision, inPlace+": ") }

// noSurge reports whether the case needs a workload or managers that others do not.
func (c Case) noSurge() bool {
	return c.Before != nil || len(c.Labels) > 0 || len(c.Annotations) > 0 || len(c.Flags) > 0
}

// Template is the one that the case begins with.
func (c Case) Template() corev1.PodTemplateSpec {
	template := Template()
	if c.Before != nil {
		c.Before(&template)
	}
	return template
}

// Scenario is a workload whose template is changed again and again.
type Scenario struct {
	Name string
	// Cases in their order: more than one only where they ask for the same workload and the same managers.
	Cases []Case
}

// longestScenario is how many changes follow each other, so that scenarios that run side by side take about the same time.
const longestScenario = 6

// Scenarios are those of the whole table. What recreates pods is kept apart from what does not, so that the pods of a scenario in place live
// through all of it.
func Scenarios() []Scenario {
	var all []Scenario
	for _, c := range Table {
		if c.noSurge() {
			all = append(all, Scenario{c.Name, []Case{c}})
		}
	}
	all = append(all, together(inPlace, Case.InPlace)...)
	return append(all, together("recreated", func(c Case) bool { return !c.InPlace() })...)
}

// together are the scenarios of the cases that share a workload.
func together(name string, which func(Case) bool) []Scenario {
	shared := slices.DeleteFunc(slices.Clone(Table), func(c Case) bool { return c.noSurge() || !which(c) })
	var all []Scenario
	for chunk := range slices.Chunk(shared, longestScenario) {
		all = append(all, Scenario{fmt.Sprintf("%s %d", name, len(all)+1), chunk})
	}
	return all
}

// Template is the one that the scenario's first case begins with.
func (s Scenario) Template() corev1.PodTemplateSpec { return s.Cases[0].Template() }

// Flags are those that the managers need for it.
func (s Scenario) Flags() []string { return s.Cases[0].Flags }
