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
	if r.All == 0 {
		return nil
	}
	tables := []func(io.Writer){r.printCounts, r.printSettings, r.printReasons}
	tables = append(tables, func(table io.Writer) { printGroups(table, "NAMESPACE", r.Namespaces) })
	if r.Label != "" {
		tables = append(tables, func(table io.Writer) { printGroups(table, "LABEL "+r.Label, r.Labels) })
	}
	for _, write := range tables {
		table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
		write(table)
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
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

// oneLine keeps a message within a row. Names in it were not checked: a history may be of any age.
func oneLine(message string) string { return strings.Join(strings.Fields(message), " ") }

func printGroups(out io.Writer, heading string, all []Group) {
	fmt.Fprintf(out, "\n%s\tROLLOUTS\tIN PLACE\tWITH A SETTING\tNATIVE\n", heading)
	for _, each := range all {
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\n", cmp.Or(each.Name, "-"), each.All, each.InPlace, each.WithSetting, each.Native)
	}
}
