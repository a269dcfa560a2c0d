package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/stayput/stayput/cmd/kubectl-stayput/audit"
)

// auditFlags are the flags of the command audit.
type auditFlags struct {
	everywhere bool
	excluded   []string
	selector   string
	label      string
	output     output
}

func newAudit(cluster *connection, std streams) *cobra.Command {
	var asked auditFlags
	audit := &cobra.Command{
		Use:   "audit",
		Short: "Show what Stayput would have done with past rollouts",
		Long: "Show what Stayput would have done with the rollouts in the cluster's history.\n" +
			"It only reads, and needs no Stayput in the cluster.",
		Example: "  kubectl stayput audit -A\n  kubectl stayput audit -n shop --by-label team",
		Args:    cobra.NoArgs,
		RunE:    func(audit *cobra.Command, _ []string) error { return asked.run(audit.Context(), cluster, std) },
	}
	asked.register(audit)
	return audit
}

// run prints what Stayput would have done with the rollouts in the cluster's history.
func (f *auditFlags) run(ctx context.Context, cluster *connection, std streams) error {
	reader, err := f.reader(cluster)
	if err != nil {
		return err
	}
	report, err := reader.Audit(ctx)
	if err != nil {
		return err
	}
	return f.output.print(std.Out, report, report.PrintTables)
}

func (f *auditFlags) register(audit *cobra.Command) {
	flags := audit.Flags()
	flags.BoolVarP(&f.everywhere, "all-namespaces", "A", false, "all namespaces, apart from those that Stayput never manages")
	flags.StringSliceVar(&f.excluded, "excluded-namespaces", nil, "`namespaces` to leave out, besides kube-system and Stayput's own")
	flags.StringVarP(&f.selector, "selector", "l", "", "`labels` of the workloads to audit, such as tier=web")
	flags.StringVar(&f.label, "by-label", "", "`key` of a label of workloads, or else of their namespaces, by whose values to count as well")
	f.output.register(audit)
}

// reader returns a reader of what the flags ask for.
func (f *auditFlags) reader(cluster *connection) (audit.Reader, error) {
	r := audit.Reader{Excluded: append(slices.Clone(f.excluded), "kube-system", cluster.own), Label: f.label}
	var err error
	if r.Selector, err = labels.Parse(f.selector); err != nil {
		return r, err
	}
	if !f.everywhere {
		if r.Namespace, _, err = cluster.ToRawKubeConfigLoader().Namespace(); err != nil {
			return r, err
		}
		if slices.Contains(r.Excluded, r.Namespace) {
			return r, fmt.Errorf("namespace %s is never managed by Stayput; choose another with -n, or all with -A", r.Namespace)
		}
	}
	r.Reader, err = cluster.client(rest.NoWarnings{})
	return r, err
}
