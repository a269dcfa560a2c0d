package audit

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// PrintTables prints the report for people. An empty line ends a table.
func (r Report) PrintTables(to io.Writer) error {
	out := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprintf(out, "Rollouts in the history: %d. Workloads: %d with rollouts, %d without.\n", r.All, r.Workloads-r.Unchanged, r.Unchanged)
	if r.All > 0 {
		r.printCounts(out)
		r.printReasons(out)
		printGroups(out, "NAMESPACE", r.Namespaces)
	}
	if r.All > 0 && r.Label != "" {
		printGroups(out, "LABEL "+r.Label, r.Labels)
	}
	return out.Flush()
}

func (r Report) printCounts(out io.Writer) {
	share := func(rollouts int) int { return (100*rollouts + r.All/2) / r.All }
	fmt.Fprintln(out, "\nWITH STAYPUT\tROLLOUTS\tSHARE")
	fmt.Fprintf(out, "in place\t%d\t%d%%\n", r.InPlace, share(r.InPlace))
	fmt.Fprintf(out, "in place with a setting\t%d\t%d%%\n", r.WithSetting, share(r.WithSetting))
	fmt.Fprintf(out, "native\t%d\t%d%%\n", r.Native, share(r.Native))
}

// printReasons prints what would make rollouts in place, and why the others are native. Names in a message were not checked: a history may
// be of any age.
func (r Report) printReasons(out io.Writer) {
	if len(r.Settings) > 0 {
		fmt.Fprintln(out, "\nROLLOUTS\tSETTING THAT WOULD MAKE THEM IN PLACE")
	}
	for _, each := range r.Settings {
		fmt.Fprintf(out, "%d\t%s\n", each.Rollouts, each.Setting)
	}
	if len(r.Reasons) > 0 {
		fmt.Fprintln(out, "\nROLLOUTS\tREASON WHY NATIVE\tFIELD\tEXAMPLE")
	}
	for _, each := range r.Reasons {
		message := strings.Join(strings.Fields(each.Message), " ")
		fmt.Fprintf(out, "%d\t%s\t%s\t%s: %s\n", each.Rollouts, each.Code, cmp.Or(each.Path, "-"), each.Example, message)
	}
}

func printGroups(out io.Writer, heading string, all []Group) {
	fmt.Fprintf(out, "\n%s\tROLLOUTS\tIN PLACE\tWITH A SETTING\tNATIVE\n", heading)
	for _, each := range all {
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\n", cmp.Or(each.Name, "-"), each.All, each.InPlace, each.WithSetting, each.Native)
	}
}
