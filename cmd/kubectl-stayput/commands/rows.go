package commands

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/steps"
)

// decision is what happens to an object, as -o json has it.
type decision string

const (
	inPlace   decision = "InPlace"
	recreate  decision = "Recreate"
	created   decision = "Created"
	unchanged decision = "Unchanged" // the pod template stays as it is; other fields may change
	skipped   decision = "Skipped"
	failed    decision = "Error"
)

// judge is the program that has decided.
type judge string

const (
	byStayput judge = "Stayput"
	byPlugin  judge = "plugin"
)

// These are the exit codes of plan other than 0.
const (
	exitFailed   exit = 1
	exitRecreate exit = 2
)

// row is the plan of one object.
type row struct {
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	Plan      decision `json:"plan"`
	// Message is for users; programs read the other fields.
	Message string `json:"message,omitempty"`
	// The fields up to Surge are set if Plan is InPlace:
	Containers  []string `json:"containers,omitempty"` // containers that restart
	Resized     []string `json:"resized,omitempty"`    // containers that get other CPU or memory
	Pods        int      `json:"pods,omitempty"`
	AtPartition int      `json:"atPartition,omitempty"` // how many of the pods are at the partition
	AtATime     int      `json:"atATime,omitempty"`
	Surge       int      `json:"surge,omitempty"`
	// Reasons and Refused are set if Plan is Recreate:
	Reasons []reason `json:"reasons,omitempty"`
	Refused bool     `json:"refused,omitempty"`
	// DecidedBy is empty if there was nothing to decide.
	DecidedBy judge `json:"decidedBy,omitempty"`
}

type reason struct {
	Code    string `json:"code,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

func rowOf(object *unstructured.Unstructured) row {
	return row{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

func (r row) with(plan decision, message string) row {
	r.Plan, r.Message = plan, message
	return r
}

// decided returns the row with Stayput's decision if it has answered, otherwise with the plugin's own preview.
func (r row) decided(preview steps.Preview, answer string) row {
	r.DecidedBy = byPlugin
	if answer != "" {
		r.DecidedBy = byStayput
	}
	preview = wait(preview, answer)
	r = r.previewed(preview, answer)
	for _, about := range preview.Notices() {
		r.Message += "; " + about
	}
	return r
}

func (r row) previewed(preview steps.Preview, answer string) row {
	if !preview.InPlace() {
		return r.recreated(preview.Reasons)
	}
	r = r.with(inPlace, strings.TrimPrefix(cmp.Or(answer, preview.String()), edit.InPlacePrefix))
	for container := range preview.Change.Containers.Restarting() {
		r.Containers = append(r.Containers, container.Container)
	}
	for _, container := range preview.Change.Containers.Resizing() {
		r.Resized = append(r.Resized, container.Container)
	}
	if len(r.Containers) > 0 {
		return r.restarting(preview)
	}
	return r
}

func (r row) restarting(preview steps.Preview) row {
	r.Pods, r.AtPartition, r.AtATime, r.Surge = preview.Pods, preview.AtPartition, preview.AtATime, preview.SurgePods
	pods := strconv.Itoa(r.Pods)
	if r.AtPartition > 0 {
		pods = fmt.Sprintf("%d of %d", preview.Moving(), r.Pods)
	}
	r.Message += fmt.Sprintf(" in %s pods, %d at a time", pods, r.AtATime)
	if r.Surge > 0 {
		r.Message += fmt.Sprintf(", with %d surge pods", r.Surge)
	}
	if preview.Replaced > 0 {
		r.Message += ", which replace as many"
	}
	return r
}

func (r row) recreated(reasons inplace.Reasons) row {
	r.Plan, r.Message = recreate, reasons.String()
	for _, each := range reasons {
		r.Reasons = append(r.Reasons, reason{each.Code, each.Path, each.Message})
	}
	return r
}

// refused returns the row of an edit that Stayput refuses, because the namespace or workload is in-place-only.
func (r row) refused(reasons inplace.Reasons) row {
	r = r.recreated(reasons)
	r.Refused, r.DecidedBy, r.Message = true, byStayput, "refused, as pods would be recreated: "+r.Message
	return r
}

// printRows prints the rows and returns the exit code as an error.
func printRows(rows []row, as output, std streams) error {
	table := func(out io.Writer) error { return printTable(rows, out) }
	if err := as.print(std.Out, map[string][]row{"objects": rows}, table); err != nil {
		return err
	}
	if slices.ContainsFunc(rows, unanswered) {
		fmt.Fprintln(std.ErrOut,
			"Stayput itself has not answered, so this is kubectl-stayput's own decision: is Stayput installed, and does something on the way drop warnings?")
	}
	return exitOf(rows)
}

// unanswered reports whether Stayput should have answered and has not.
func unanswered(r row) bool {
	native := slices.ContainsFunc(r.Reasons, func(why reason) bool { return why.Code == inplace.CodeMode })
	return r.DecidedBy == byPlugin && !native
}

func exitOf(rows []row) error {
	is := func(plan decision) bool {
		return slices.ContainsFunc(rows, func(r row) bool { return r.Plan == plan })
	}
	switch {
	case is(failed):
		return exitFailed
	case is(recreate):
		return exitRecreate
	}
	return nil
}

// words are the decisions as the table shows them.
var words = map[decision]string{
	inPlace: "in place", recreate: "recreate", created: "created", unchanged: "unchanged", skipped: "skipped", failed: "error",
}

func printTable(rows []row, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAMESPACE\tOBJECT\tPLAN\tDETAILS")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s/%s\t%s\t%s\n", r.Namespace, strings.ToLower(r.Kind), r.Name, words[r.Plan], r.Message)
	}
	return table.Flush()
}
