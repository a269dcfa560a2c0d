// Command report makes a page of the figures of `make bench`: report FOLDER PAGE reads FOLDER/figures.json, draws the plots beside it,
// writes PAGE, and prints how far the figures are from the goals.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("wants a folder with figures.json and the page to write: report FOLDER PAGE")
	}
	folder, page := arguments[0], arguments[1]
	all, err := read(filepath.Join(folder, "figures.json"))
	if err != nil {
		return err
	}
	drawn, err := draw(all, folder)
	if err != nil {
		return err
	}
	text, err := render(all, drawn, filepath.Base(folder))
	if err != nil {
		return err
	}
	fmt.Println(summary(all))
	return os.WriteFile(page, []byte(text), 0o644)
}
