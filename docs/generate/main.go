// Command generate writes the pages of docs/reference that follow from the code: each page from a template beside this file and from what
// the code says about labels, flags, events, reasons, metrics and commands. It runs in the repository's root and is given the folder to
// write to.
package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

//go:embed *.md.tmpl
var templates embed.FS

// pages are the functions that read the data of the pages, by the pages' names.
var pages = map[string]func() (any, error){
	"changes":      func() (any, error) { return rows(), nil },
	"settings":     func() (any, error) { return readSettings() },
	"events":       func() (any, error) { return readEvents() },
	"metrics":      func() (any, error) { return readMetrics() },
	"command-line": func() (any, error) { return readCommands() },
	"names":        func() (any, error) { return readNames() },
}

func main() {
	if err := generate(os.Args[1:]...); err != nil {
		fmt.Fprintln(os.Stderr, "docs/generate:", err)
		os.Exit(1)
	}
}

// generate writes all pages into a folder.
func generate(arguments ...string) error {
	if len(arguments) != 1 {
		return errors.New("say the folder to write to, and nothing else")
	}
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		var text strings.Builder
		if err := write(&text, page); err != nil {
			return fmt.Errorf("page %s: %w", page, err)
		}
		trimmed := strings.TrimRight(text.String(), "\n") + "\n"
		if err := os.WriteFile(filepath.Join(arguments[0], page+".md"), []byte(trimmed), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// write writes one page.
func write(out io.Writer, page string) error {
	data, err := pages[page]()
	if err != nil {
		return err
	}
	name := page + ".md.tmpl"
	parsed, err := template.New(name).Funcs(template.FuncMap{"join": strings.Join}).ParseFS(templates, name)
	if err != nil {
		return err
	}
	return parsed.Execute(out, data)
}

// readNames returns the names that Stayput itself sets on objects.
func readNames() (marks []constant, err error) {
	err = constants("inplace", in("names.go", "Label", "Annotation"), &marks)
	return marks, err
}
