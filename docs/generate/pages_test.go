package main

import (
	"go/ast"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stayput/stayput/e2e/changes"
)

// TestAdviceIsAboutSomething checks that each advice is about an event or a reason that exists. The generator checks the reverse.
func TestAdviceIsAboutSomething(t *testing.T) {
	t.Chdir("../..")
	page, err := readEvents()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(page.Events); got != len(adviceOnEvents) {
		t.Errorf("there are %d events, and advice about %d", got, len(adviceOnEvents))
	}
	if got := len(page.Reasons) + len(page.Failures); got != len(adviceOnReasons) {
		t.Errorf("there are %d reasons, and advice about %d", got, len(adviceOnReasons))
	}
}

// TestFieldsOfJSONAreListed checks that the page names each field of the plugin's JSON.
func TestFieldsOfJSONAreListed(t *testing.T) {
	page, err := templates.ReadFile("command-line.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := parse("../../cmd/kubectl-stayput/commands")
	if err != nil {
		t.Fatal(err)
	}
	audit, err := parse("../../cmd/kubectl-stayput/audit")
	if err != nil {
		t.Fatal(err)
	}
	check, err := parse("../../internal/check")
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	for _, file := range slices.Concat(plan, audit, check) {
		ast.Inspect(file, func(node ast.Node) bool {
			field, is := node.(*ast.Field)
			if !is || field.Tag == nil || !strings.HasPrefix(field.Tag.Value, "`json:") {
				return true
			}
			name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
			if fields++; !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("command-line.md.tmpl does not name the field %s", name)
			}
			return true
		})
	}
	if fields < 20 {
		t.Errorf("found only %d fields in the plugin", fields)
	}
}

// TestFlagsOfKubectlAreLeftOut checks that the page has the flags of a command, and not those of kubectl, some of whose defaults depend on
// the machine.
func TestFlagsOfKubectlAreLeftOut(t *testing.T) {
	t.Chdir("../..")
	page, err := readCommands()
	if err != nil {
		t.Fatal(err)
	}
	got, err := page.Described("status")
	if err != nil || !strings.Contains(got, "--watch") || strings.Contains(got, "--cache-dir") {
		t.Errorf("status: %v, %s", err, got)
	}
	if _, err := page.Described("undo"); err == nil {
		t.Error("a command that does not exist is described")
	}
}

func TestConditionsOfACase(t *testing.T) {
	with := row{changes.Case{Annotations: map[string]string{"b": "2", "a": "1"}}}
	if got := with.Conditions(); got != "`a: 1`, `b: 2`" {
		t.Errorf("got %s", got)
	}
}
