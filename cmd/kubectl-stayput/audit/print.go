package audit

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// PrintTables prints the report for people.
func (r Report) PrintTables(out io.Writer) error {
	fmt.Fprintf(out, "Rollouts in the history: %d. Workloads: %d with rollouts, %d without.\n", r.All, r.Workloads-r.Unchanged, r.Unchanged)
	for _, write := range r.tables() {
		table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
		write(table)
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (r Report) tables() []func(io.Writer) {
	if r.All == 0 {
		return []func(io.Writer){r.printTroubles}
	}
	tables := []func(io.Writer){r.printCounts, r.printSettings, r.printReasons, r.printTroubles}
	tables = append(tables, func(table io.Writer) { printGroups(table, "NAMESPACE", r.Namespaces) })
	if r.Label != "" {
		tables = append(tables, func(table io.Writer) { printGroups(table, "LABEL "+r.Label, r.Labels) })
	}
	return tables
}

func (r Report) printCounts(out io.Writer) {
	fmt.Fprintln(out, "\nWITH STAYPUT\tROLLOUTS\tSHARE")
	for _, each := range []struct {
		what     string
		rollouts int
	}{{"in place", r.InPlace}, {"in place with a setting", r.WithSetting}, {"native", r.Native}} {
		fmt.Fprintf(out, "%s\t%d\t%d%%\n", each.what, each.rollouts, (100*each.rollouts+r.All/2)/r.All)
	}
}

func (r Report) printSettings(out io.Writer) {
	if len(r.Settings) == 0 {
		return
	}
	fmt.Fprintln(out, "\nROLLOUTS\tSETTING THAT WOULD MAKE THEM IN PLACE")
	for _, each := range r.Settings {
		fmt.Fprintf(out, "%d\t%s\n", each.Rollouts, each.Setting)
	}
}

func (r Report) printReasons(out io.Writer) {
	if len(r.Reasons) == 0 {
		return
	}
	fmt.Fprintln(out, "\nROLLOUTS\tREASON WHY NATIVE\tFIELD\tEXAMPLE")
	for _, each := range r.Reasons {
		fmt.Fprintf(out, "%d\t%s\t%s\t%s: %s\n", each.Rollouts, each.Code, cmp.Or(each.Path, "-"), each.Example, oneLine(each.Message))
	}
}

func (r Report) printTroubles(out io.Writer) {
	if len(r.Troubles) > 0 {
		fmt.Fprintln(out, "\nWORKLOADS\tWHAT THEY MET\tLAST ROLLOUT IN PLACE\tEXAMPLE")
	}
	for _, each := range r.Troubles {
		fmt.Fprintf(out, "%d\t%s\t%d\t%s: %s\n", each.Workloads, each.Trouble, each.LastInPlace, each.Example, oneLine(each.Message))
	}
	if r.EventsUnread {
		fmt.Fprintln(out, "\nYou may not list events, so it is not known which pods had no room or no quota.")
	}
}

// oneLine keeps a message within a row. Names in it were not checked: a history may be of any age.
func oneLine(message string) string { return strings.Join(strings.Fields(message), " ") }

func printGroups(out io.Writer, heading string, all []Group) {
	fmt.Fprintf(out, "\n%s\tROLLOUTS\tIN PLACE\tWITH A SETTING\tNATIVE\n", heading)
	for _, each := range all {
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\n", cmp.Or(each.Name, "-"), each.All, each.InPlace, each.WithSetting, each.Native)
	}
}
