package verdict

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Table prints a line for each test: its outcome natively and in place, and Stayput's events about its workloads.
func (r *Runs) Table(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TEST\tNATIVE\tIN PLACE\tEVENTS OF STAYPUT")
	for _, test := range r.names() {
		inPlace := r.inPlace.tests[test]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", test, ended(r.native, test), r.endedInPlace(test), inPlace.said())
	}
	_ = table.Flush()
	r.promises(out)
}

func ended(in run, test string) string {
	outcome, ran := in.tests[test]
	switch {
	case !ran:
		return "-"
	case outcome.passed:
		return "passed " + outcome.took.Round(time.Second).String()
	}
	return "FAILED " + outcome.took.Round(time.Second).String()
}

func (r *Runs) endedInPlace(test string) string {
	if promise, excepted := exceptions[test]; excepted && promise.fault(test, r.inPlace.tests[test]) == "" {
		return "excepted"
	}
	return ended(r.inPlace, test)
}

func (o outcome) said() string {
	said := make([]string, 0, len(o.events))
	for _, reason := range slices.Sorted(maps.Keys(o.events)) {
		said = append(said, fmt.Sprintf("%s %d", reason, o.events[reason]))
	}
	return strings.Join(said, ", ")
}

// promises prints why exceptions are exceptions.
func (r *Runs) promises(out io.Writer) {
	for _, test := range slices.Sorted(maps.Keys(exceptions)) {
		if r.endedInPlace(test) == "excepted" {
			fmt.Fprintf(out, "\nexcepted: %s\n  It %s.\n  Stayput promises: %q.\n", test, exceptions[test].How, exceptions[test].Contradicts)
		}
	}
}
