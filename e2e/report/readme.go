package main

import (
	"fmt"
	"os"
	"strings"
)

// The table of figures in the README is between these lines.
const (
	tableBegins = "<!-- make performance writes this table -->\n"
	tableEnds   = "<!-- end of the table -->\n"
)

// writeReadme writes the table of figures into the README.
func writeReadme(f figures, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return fmt.Errorf("%s has no lines %q and %q", path, strings.TrimSpace(tableBegins), strings.TrimSpace(tableEnds))
	}
	return os.WriteFile(path, []byte(before+tableBegins+readmeTable(f)+tableEnds+after), 0o644)
}

// readmeTable returns the few figures that show what users gain, and what they pay.
func readmeTable(f figures) string {
	var text strings.Builder
	text.WriteString("\n| measured | native | in place |\n|---|---:|---:|\n")
	row := func(what, bench, way, figure, unit string) {
		if c, measured := compare(f, figure, bench, way); measured {
			fmt.Fprintf(&text, "| %s | %s %s | %s %s |\n", what, c.Native, unit, c.InPlace, unit)
		}
	}
	startsSlowly := slowly("5", "Service, drain 2 s")
	row("DaemonSet on three nodes, no Service", daemonSet, inPlace, seconds, "s")
	row("Deployment of 20 pods, no Service", twenty, inPlace, seconds, "s")
	row("20 pods behind a Service, drain 2 s", twentyServed, inPlace, seconds, "s")
	row("those that start in 5 s", startsSlowly, inPlace, seconds, "s")
	row("that with `surge: replace`", startsSlowly, replacing, seconds, "s")
	row("4 pods behind a Service, one at a time", served, inPlace, seconds, "s")
	row("the whole cluster's CPU for each of 20 pods", twenty, inPlace, clusterCPU, "ms")
	fmt.Fprintf(&text, "| memory of the larger manager, 3,000 simulated pods | no manager | %s MiB |\n",
		number(f.value(simulatedDeployment(3000), inPlace, memory)))
	return text.String() + "\n"
}
