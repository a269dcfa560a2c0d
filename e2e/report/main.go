// Command report makes pages of the figures of `make bench`: report FOLDER PAGE reads FOLDER/figures.json, draws the plots beside it,
// writes PAGE and beside it costs.md, and prints how far the figures are from the goals. report FOLDER PAGE README also writes the table of
// figures in README. report dashboard JSON URL MINUTES SVG draws a Grafana dashboard with the values of a Prometheus.
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
	if len(arguments) > 0 && arguments[0] == "dashboard" {
		return drawDashboard(arguments[1:])
	}
	if len(arguments) != 2 && len(arguments) != 3 {
		return errors.New("wants a folder with figures.json and the pages to write: report FOLDER PAGE [README]")
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
	paid, err := costs(all)
	if err != nil {
		return err
	}
	fmt.Println(summary(all))
	costsPath := filepath.Join(filepath.Dir(page), "costs.md")
	err = errors.Join(os.WriteFile(page, []byte(text), 0o644), os.WriteFile(costsPath, []byte(paid), 0o644))
	if len(arguments) == 3 {
		err = errors.Join(err, writeReadme(all, arguments[2]))
	}
	return err
}
