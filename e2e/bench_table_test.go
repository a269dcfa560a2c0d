//go:build e2e && bench

package e2e

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// figure is one number that was measured.
type figure struct {
	what  string
	value float64
}

// table sets two sides against each other, 80 columns wide. What was not measured is a dash.
func table(title string, marked, plain []figure) string {
	var text strings.Builder
	line := func(columns ...any) { fmt.Fprintf(&text, "%-46s %10s %10s %10s\n", columns...) }
	text.WriteString("\n")
	line(title, "in place", "native", "ratio")
	for _, what := range rows(marked, plain) {
		a, b := valueOf(marked, what), valueOf(plain, what)
		line(what, shown(a), shown(b), shown(a/b))
	}
	return text.String()
}

// rows are what was measured on either side, in the order in which it was.
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
	case math.IsNaN(value) || math.IsInf(value, 0):
		return "-"
	case math.Abs(value) >= 100:
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.2f", value)
}

// quantile is the smallest value that a share q of all do not exceed, NaN of none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Ceil(q*float64(len(sorted))))-1]
}

// mean is that of one part of each cost, NaN of none.
func mean(costs []cost, of func(cost) float64) float64 {
	sum := 0.0
	for _, c := range costs {
		sum += of(c)
	}
	return sum / float64(len(costs))
}
