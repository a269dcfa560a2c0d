package check

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	// Error: updates are native, or are refused, until it is mended.
	Error Level = "error"
	// Warning: updates in place work, but not as well as they could, or not everywhere.
	Warning Level = "warning"
	// Unchecked: the API server did not let the check read what it needs.
	Unchecked Level = "unchecked"
)

// Finding is one thing that is wrong.
type Finding struct {
	Level Level `json:"level"`
	// About is the topic.
	About   string `json:"about"`
	Problem string `json:"problem"`
	Remedy  string `json:"remedy"`
}

// Passed says what was found where nothing is wrong.
type Passed struct {
	About string `json:"about"`
	Says  string `json:"says"`
}

// Report is the result of a check.
type Report struct {
	// Installed reports whether Stayput is in the cluster. If not, only the cluster was checked.
	Installed bool      `json:"installed"`
	Findings  []Finding `json:"findings"`
	Passed    []Passed  `json:"passed"`
}

// Has reports whether there is a finding of that level.
func (r Report) Has(level Level) bool {
	return slices.ContainsFunc(r.Findings, func(each Finding) bool { return each.Level == level })
}

// finds reports whether there is a finding about that topic.
func (r Report) finds(about string) bool {
	return slices.ContainsFunc(r.Findings, func(each Finding) bool { return each.About == about })
}

// PrintText writes a line for each topic that passed, and two lines for each finding: what is wrong, and what mends it.
func (r Report) PrintText(out io.Writer) error {
	for _, each := range r.Passed {
		fmt.Fprintf(out, "%-10s %s: %s\n", "ok", each.About, each.Says)
	}
	for _, each := range r.Findings {
		problem := strings.Join(strings.Fields(each.Problem), " ") // it may quote a message of several lines
		fmt.Fprintf(out, "%-10s %s: %s\n%-10s Mend it: %s\n", each.Level, each.About, problem, "", each.Remedy)
	}
	last := "Nothing is wrong."
	switch {
	case len(r.Findings) > 0:
		last = fmt.Sprintf("Findings: %d.", len(r.Findings))
	case !r.Installed:
		last = "Nothing is wrong with the cluster. Stayput is not installed."
	}
	_, err := fmt.Fprintln(out, last)
	return err
}
