package main

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed costs.md.tmpl
var costsPage string

// costs writes the page for users about what an update costs.
func costs(f figures) (string, error) {
	parsed, err := template.New("costs.md").Funcs(template.FuncMap{
		"figure": func(bench, way, what string) string { return told(f.value(bench, way, what)) },
		"whole":  func(bench, way, what string) string { return whole(f.value(bench, way, what)) },
		"times":  func(bench, what string) string { return told(f.times(bench, inPlace, what)) },
	}).Parse(costsPage)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = parsed.Execute(&text, map[string]any{
		"Times": compared(f, seconds, daemonSet, four, twenty, twentyServed, served, resized,
			simulatedDaemonSet(1000)),
		"Slow":     slow(f),
		"Crowds":   compared(f, seconds, simulatedDeployment(100), simulatedDeployment(3000)),
		"Many":     compared(f, seconds, workloads(100, "label"), workloads(100, "images"), workloads(300, "label"), workloads(300, "images")),
		"Writes":   compared(f, writes, daemonSet, twenty, twentyServed, simulatedDaemonSet(1000), simulatedDeployment(3000)),
		"Managers": managers(f), "Bills": bills(f),
	})
	return text.String(), err
}

// comparison is a figure of both ways, and how many writes are refused in place. Where in place is the larger one, it is bold.
type comparison struct{ What, Native, InPlace, Times, Refused string }

// compared returns the figure of each bench for which both ways were measured.
func compared(f figures, what string, benches ...string) []comparison {
	var rows []comparison
	for _, bench := range benches {
		if row, measured := compare(f, what, bench, inPlace); measured {
			rows = append(rows, row)
		}
	}
	return rows
}

// compare returns the figure of a way beside the native one, and whether both were measured.
func compare(f figures, what, bench, way string) (comparison, bool) {
	times := f.times(bench, way, what)
	row := comparison{What: bench, Native: number(f.value(bench, native, what)), InPlace: number(f.value(bench, way, what)),
		Times: number(times), Refused: told(f.value(bench, way, refused))}
	if times > 1 {
		row.InPlace, row.Times = "**"+row.InPlace+"**", "**"+row.Times+"**"
	}
	return row, known(times)
}

// slowRow is how long an update of an application takes that starts slowly.
type slowRow struct{ What, Native, InPlace, Replacing string }

func slow(f figures) []slowRow {
	var rows []slowRow
	for _, starts := range []string{"5", "20"} {
		for _, behind := range []string{"no Service", "Service, drain 2 s"} {
			bench := slowly(starts, behind)
			of := func(way string) string { return told(f.value(bench, way, seconds)) }
			if known(f.times(bench, inPlace, seconds)) {
				rows = append(rows, slowRow{bench, of(native), of(inPlace), of(replacing)})
			}
		}
	}
	return rows
}

// slowly is the bench of an application that needs so many seconds to start.
func slowly(seconds, behind string) string {
	return fmt.Sprintf("20 pods that take %s s to start, %s", seconds, behind)
}

// managerRow is what Stayput's managers use.
type managerRow struct{ What, Native, InPlace, MemoryNative, MemoryInPlace string }

func managers(f figures) []managerRow {
	var rows []managerRow
	for _, bench := range []string{twenty, simulatedDeployment(3000), simulatedDaemonSet(1000)} {
		of := func(way, what string) string { return whole(f.value(bench, way, what)) }
		rows = append(rows, managerRow{bench, of(native, milliseconds), of(inPlace, milliseconds), of(native, memory), of(inPlace, memory)})
	}
	return rows
}

// bills returns what the whole cluster pays for a pod.
func bills(f figures) []comparison {
	var rows []comparison
	for _, bench := range []string{twenty, daemonSet} {
		for _, what := range []string{clusterCPU, etcdWrites} {
			for _, row := range compared(f, what, bench) {
				row.What += ": " + what
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// told returns the figure, or that it was not measured.
func told(value float64) string {
	if !known(value) {
		return "not measured"
	}
	return number(value)
}

// whole returns the figure without decimals, and with a comma before the last three digits of thousands.
func whole(value float64) string {
	if !known(value) {
		return told(value)
	}
	text := fmt.Sprintf("%.0f", value)
	if n := len(text); 3 < n && n <= 6 {
		text = text[:n-3] + "," + text[n-3:]
	}
	return text
}
