package check

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// PrintText writes a line for each topic that passed, and two lines for each finding: what is wrong, and what mends it.
func (r Report) PrintText(out io.Writer) error {
	for _, each := range r.Passed {
		fmt.Fprintf(out, "%-10s %s: %s\n", "ok", each.About, each.Says)
	}
	for _, each := range r.Findings {
		fmt.Fprintf(out, "%-10s %s: %s\n%-10s Mend it: %s\n", each.Level, each.About, oneLine(each.Problem), "", each.Remedy)
	}
	_, err := fmt.Fprintln(out, r.summary())
	return err
}

// oneLine keeps a message within its line: errors of several readings have several lines. Tenants write events that are quoted, so control
// characters reach no terminal, of the plugin or of kubectl logs.
func oneLine(message string) string {
	visible := func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}
	return strings.Map(visible, strings.Join(strings.Fields(message), " "))
}

func (r Report) summary() string {
	var parts []string
	for _, level := range []Level{Error, Warning} {
		if n := r.count(level); n > 0 {
			parts = append(parts, counted(n, string(level)))
		}
	}
	if n := r.count(Unchecked); n > 0 {
		parts = append(parts, fmt.Sprintf("%d not checked", n))
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ") + "."
	case !r.Installed:
		return "Nothing is wrong with the cluster. Stayput is not installed."
	}
	return "Nothing is wrong."
}
