// Command notice prints which Go modules are linked into commands, and under which licences:
//
//	notice list LICENSE ./cmd/stayput ./cmd/kubectl-stayput
//	notice texts LICENSE ./cmd/stayput ./cmd/kubectl-stayput
//
// "list" prints a line for each module: version, licences and a link. "texts" prints what the licences require to pass on with a binary.
// LICENSE is Stayput's own licence, which is not repeated. A licence that is unknown, or that is not listed as compatible, is an error.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

var errUsage = errors.New("usage: notice list|texts LICENSE PACKAGE...")

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "notice:", err)
		os.Exit(1)
	}
}

// run writes what the arguments ask for.
func run(out io.Writer, args []string) error {
	if len(args) < 3 || args[0] != "list" && args[0] != "texts" {
		return errUsage
	}
	license, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	files, err := linkedFiles(args[2:])
	if err != nil {
		return err
	}
	texts, err := readAll(files)
	if err != nil {
		return err
	}
	page := list(texts)
	if args[0] == "texts" {
		page = passedOn(texts, string(license))
	}
	_, err = io.WriteString(out, strings.TrimSpace(page)+"\n")
	return err
}
