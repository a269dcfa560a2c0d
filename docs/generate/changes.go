package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stayput/stayput/e2e/changes"
)

// row is a case as docs/reference/changes.md shows it.
type row struct{ changes.Case }

func rows() []row {
	var all []row
	for _, c := range changes.Table {
		all = append(all, row{c})
	}
	return all
}

// Outcome returns the beginning of the decision.
func (r row) Outcome() string {
	outcome, _, _ := strings.Cut(r.Decision, ": ")
	return outcome
}

// Told returns the rest of the decision, and the second warning if there is one. Names of users' objects may have characters that have a
// meaning in a table, so they are escaped.
func (r row) Told() string {
	_, told, _ := strings.Cut(r.Decision, ": ")
	if r.Aside != "" {
		told += "; " + r.Aside
	}
	return strings.ReplaceAll(told, "|", `\|`)
}

// Conditions returns the annotations that the workload must have. Flags that the managers must have are in the name of the case.
func (r row) Conditions() string { return strings.Join(conditions(r.Annotations), ", ") }

func conditions(entries map[string]string) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		all = append(all, fmt.Sprintf("`%s: %s`", key, entries[key]))
	}
	return all
}
