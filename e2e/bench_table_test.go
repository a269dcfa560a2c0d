//go:build e2e && bench

package e2e

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// figure is one measured number.
type figure struct {
	what  string
	value float64
}

// column is one of several compared things. The fields beside the figures are for the page (module report).
type column struct {
	name    string
	figures []figure
	updated []float64 // when each pod was updated, in seconds
	steps   []float64 // of each pod in all updates, without drain, in seconds
}

// present prints the comparison, and writes it to the figures unless the test has failed.
func present(t *testing.T, title string, all []column) {
	t.Helper()
	fmt.Println(columns(title, all))
	if t.Failed() {
		return
	}
	if err := keepResult(title, all); err != nil {
		t.Errorf("the figures could not be kept: %v", err)
	}
}

// columns prints columns side by side. A dash stands for what was not measured.
func columns(title string, all []column) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%-50s", title)
	sides := make([][]figure, 0, len(all))
	for _, c := range all {
		fmt.Fprintf(&text, " %16s", c.name)
		sides = append(sides, c.figures)
	}
	for _, what := range rows(sides...) {
		fmt.Fprintf(&text, "\n%-50s", what)
		for _, side := range sides {
			fmt.Fprintf(&text, " %16s", shown(valueOf(side, what)))
		}
	}
	return text.String() + "\n"
}

// rows returns the names of the figures of all sides, in the order of their measurement.
func rows(sides ...[]figure) []string {
	var all []string
	for _, f := range slices.Concat(sides...) {
		if !slices.Contains(all, f.what) {
			all = append(all, f.what)
		}
	}
	return all
}

func valueOf(figures []figure, what string) float64 {
	at := slices.IndexFunc(figures, func(f figure) bool { return f.what == what })
	if at < 0 {
		return math.NaN()
	}
	return figures[at].value
}

func shown(value float64) string {
	switch {
	case !measured(value):
		return "-"
	case math.Abs(value) >= 100:
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.2f", value)
}

// counterFigures returns the figures that every bench has of its counters, in the median of all updates.
func counterFigures[C any](costs []C, of func(C) counters) []figure {
	median := func(what func(counters) float64) float64 {
		return quantile(each(costs, func(c C) float64 { return what(of(c)) }), 0.5)
	}
	figures := []figure{
		{"API writes per pod, without events", median(func(c counters) float64 { return c.writes })},
		{"API writes per pod, events", median(func(c counters) float64 { return c.events })},
		{"API writes per pod, refused", median(func(c counters) float64 { return c.refused })},
	}
	for kind := range len(refusable) + 1 {
		name := "others"
		if kind < len(refusable) {
			name = refusable[kind].name
		}
		figures = append(figures, figure{"refused per pod: " + name, median(func(c counters) float64 { return c.refusals[kind] })})
	}
	return append(figures,
		figure{"native writes held per pod", median(func(c counters) float64 { return c.held })},
		figure{"milliseconds of the managers' CPU per pod", 1000 * median(func(c counters) float64 { return c.cpu })})
}

func measured(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }

// quantile returns the smallest value that a share q of all values do not exceed. It returns NaN for no values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Ceil(q*float64(len(sorted))))-1]
}
