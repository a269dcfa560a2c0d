// Command generate prints a page of docs. The page names has what the code says about commands, labels, events, reasons and metrics.
// The page changes has the changes in pod templates that the end-to-end suite makes. The command runs in the repository's root.
package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/template"
)

//go:embed names.md.tmpl
var referencePage string

// reference has the data of the page names.
type reference struct {
	Usage       string
	Flags       []help
	Settings    []constant
	Marks       []constant
	Events      []event
	Reasons     []constant
	Failures    []constant
	Decisions   []constant
	Metrics     []metric
	Environment []constant
}

func main() {
	if err := generate(os.Stdout, os.Args[1:]...); err != nil {
		fmt.Fprintln(os.Stderr, "docs/generate:", err)
		os.Exit(1)
	}
}

func generate(out io.Writer, pages ...string) error {
	switch {
	case slices.Equal(pages, []string{"names"}):
		r, err := read()
		if err != nil {
			return err
		}
		return write(out, referencePage, r)
	case slices.Equal(pages, []string{"changes"}):
		return write(out, changesPage, rows())
	}
	return fmt.Errorf("pages %q: say names or changes", pages)
}

func write(out io.Writer, page string, from any) error {
	parsed, err := template.New("page").Funcs(template.FuncMap{"join": strings.Join}).Parse(page)
	if err != nil {
		return err
	}
	return parsed.Execute(out, from)
}

// read returns the data of the page names, from the code.
func read() (reference, error) {
	var r reference
	for _, part := range []struct {
		into   *[]constant
		folder string
		which  func(constant) bool
	}{
		{&r.Settings, "inplace", in("settings.go", "Label")},
		{&r.Settings, "inplace", in("partition.go", "Label")},
		{&r.Settings, "inplace", in("rules.go", "Annotation")},
		{&r.Settings, "inplace", in("auxiliary.go", "Annotation")},
		{&r.Marks, "inplace", in("names.go", "Label", "Annotation", "Condition")},
		{&r.Reasons, "inplace", in("", "Code")},
		{&r.Failures, "controller/report", in("report.go", "failed")},
		{&r.Decisions, "webhook", func(c constant) bool { return c.kind == "decision" && c.Value != "" }},
		{&r.Environment, "cmd/stayput", in("environment.go", "env")},
	} {
		if err := constants(part.folder, part.which, part.into); err != nil {
			return r, err
		}
	}
	err := events("controller/report", &r.Events)
	if err == nil {
		r.Metrics, err = metrics()
	}
	if err == nil {
		r.Usage, r.Flags, err = commands("./cmd/stayput")
	}
	return r, err
}
