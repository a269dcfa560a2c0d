package main

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

func TestRewritten(t *testing.T) {
	for condition, want := range map[string]string{
		"a == b": "func() bool { if mutant.On(1) { return a != b }; return a == b }()",
		"a < b":  "func() bool { if mutant.On(1) { return a >= b }; if mutant.On(2) { return a <= b }; return a < b }()",
		"x && y": "mutant.And(1, x, func() bool { return y })",
		"x || a < b && y": "mutant.Or(1, x, func() bool { return mutant.And(2, " +
			"func() bool { if mutant.On(3) { return a >= b }; if mutant.On(4) { return a <= b }; return a < b }(), func() bool { return y }) })",
		"!x": "!x",
	} {
		text, changes, err := rewritten("p", "p.go", "package p\n\nconst c = 1 == 2\n\nvar z = "+condition+"\n", 1)
		if err != nil || !strings.Contains(text, "var z = "+want+"\n") || !strings.Contains(text, "const c = 1 == 2\n") {
			t.Errorf("%s becomes %s, %v", condition, text, err)
		}
		if count := strings.Count(text, "On(") + strings.Count(text, "And(") + strings.Count(text, "Or("); count != len(changes) {
			t.Errorf("%s has %d changes, and %d are listed", condition, count, len(changes))
		}
		if _, err := parser.ParseFile(token.NewFileSet(), "p.go", text, 0); err != nil {
			t.Error(err)
		}
	}
}
