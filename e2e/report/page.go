package main

import (
	_ "embed"
	"strings"
	"text/template"
)

//go:embed page.md.tmpl
var page string

// render writes the page.
func render(f figures, drawn []drawing, folder string) (string, error) {
	parsed, err := template.New("page").Parse(page)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = parsed.Execute(&text, map[string]any{
		"Folder": folder, "Drawn": drawn, "Goals": goalRows(f), "Missed": missedIn(f),
	})
	return text.String(), err
}

// goalRow is a row of the table of goals.
type goalRow struct{ What, Target, Measured, Verdict string }

func goalRows(f figures) []goalRow {
	var rows []goalRow
	for _, g := range goals() {
		rows = append(rows, goalRow{g.what, g.target(), g.measured(f), g.verdict(f)})
	}
	return rows
}
