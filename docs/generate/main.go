// Command generate prints docs/reference.md: what the code itself says of commands, labels, events, reasons and metrics. It runs in the
// repository's root.
package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"
	"text/template"
)

//go:embed reference.md.tmpl
var page string

// reference is what the page is made from.
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
	if err := generate(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "docs/generate:", err)
		os.Exit(1)
	}
}

func generate(out io.Writer) error {
	r, err := read()
	if err != nil {
		return err
	}
	parsed, err := template.New("reference").Funcs(template.FuncMap{"join": strings.Join}).Parse(page)
	if err != nil {
		return err
	}
	return parsed.Execute(out, r)
}

// read reads the code.
func read() (reference, error) {
	var r reference
	for _, part := range []struct {
		into   *[]constant
		folder string
		which  func(constant) bool
	}{
		{&r.Settings, "inplace", in("settings.go", "Label")},
		{&r.Settings, "inplace", in("partition.go", "Annotation")},
		{&r.Marks, "inplace", in("names.go", "Label", "Annotation", "Condition")},
		{&r.Marks, "inplace/revisions", in("record.go", "recordPrefix")},
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
