package main

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stayput/stayput/e2e/changes"
)

//go:embed changes.md.tmpl
var changesPage string

// row is a case as docs/changes.md has it.
type row struct{ changes.Case }

func rows() []row {
	var all []row
	for _, c := range changes.Table {
		all = append(all, row{c})
	}
	return all
}

// Outcome is how the verdict begins.
func (r row) Outcome() string {
	outcome, _, _ := strings.Cut(r.Decision, ": ")
	return outcome
}

// Told is the rest of the verdict, and what is said besides. Names of users' things may have characters that mean something in a table.
func (r row) Told() string {
	_, told, _ := strings.Cut(r.Decision, ": ")
	if r.Aside != "" {
		told += "; " + r.Aside
	}
	return strings.ReplaceAll(told, "|", `\|`)
}

// Conditions are what the workload must say of itself; that of the managers is in the name.
func (r row) Conditions() string {
	return strings.Join(append(conditions("label", r.Labels), conditions("annotation", r.Annotations)...), " and ")
}

func conditions(kind string, entries map[string]string) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		all = append(all, fmt.Sprintf("%s `%s: %s` on the workload", kind, key, entries[key]))
	}
	return all
}
