package main

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
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
		"Folder": folder, "Drawn": drawn, "Goals": goalRows(f), "Occasions": occasions(f), "Benches": benches(f),
		"Resizes": resizes(f), "Missed": missedIn(f),
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

// occasion is where and when benches were run.
type occasion struct{ Measured, Commit, Kubernetes, Machine, Benches string }

// occasions returns the occasions, with benches together whose occasions do not differ.
func occasions(f figures) []occasion {
	names := map[occasion][]string{}
	for _, bench := range slices.Sorted(maps.Keys(f)) {
		r := f[bench]
		where := occasion{Measured: r.Measured, Commit: r.Commit, Kubernetes: r.Kubernetes, Machine: r.Machine}
		names[where] = append(names[where], bench)
	}
	var all []occasion
	for where, benches := range names {
		where.Benches = strings.Join(benches, "; ")
		all = append(all, where)
	}
	slices.SortFunc(all, func(a, b occasion) int { return strings.Compare(a.Measured+a.Benches, b.Measured+b.Benches) })
	return all
}

// bench is the table of all figures of one bench.
type bench struct {
	Name string
	Ways []string
	Rows [][]string
}

func benches(f figures) []bench {
	var all []bench
	for _, name := range slices.Sorted(maps.Keys(f)) {
		b := bench{Name: name}
		for _, w := range f[name].Ways {
			b.Ways = append(b.Ways, w.Name)
		}
		for _, what := range measuredIn(f[name]) {
			b.Rows = append(b.Rows, rowOf(what, f[name].Ways))
		}
		all = append(all, b)
	}
	return all
}

// measuredIn returns the names of the figures of any way, in the order of their measurement.
func measuredIn(r result) []string {
	var all []string
	for _, w := range r.Ways {
		for _, figure := range w.Figures {
			if !slices.Contains(all, figure.What) {
				all = append(all, figure.What)
			}
		}
	}
	return all
}

func rowOf(what string, ways []way) []string {
	row := []string{what}
	for _, w := range ways {
		cell := ""
		if value := w.value(what); known(value) {
			cell = strings.TrimSuffix(fmt.Sprintf("%.2f", value), ".00")
		}
		row = append(row, cell)
	}
	return row
}
