package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
)

func newSettings(cluster *connection, std streams) *cobra.Command {
	return &cobra.Command{
		Use:   "settings (deployment/NAME | daemonset/NAME | statefulset/NAME)",
		Short: "Show the settings of a workload, and where each comes from",
		Long: "Show every setting that counts for a workload: its value, whether that is of the workload, of its namespace or the default,\n" +
			"and which value it overrides. The managers' flags are not among them.",
		Example:           "  kubectl stayput settings deployment/web",
		ValidArgsFunction: cluster.completeWorkload(),
		RunE: func(settings *cobra.Command, arguments []string) error {
			s, err := statusOf(cluster, arguments)
			if err != nil {
				return err
			}
			return s.printSettings(settings.Context(), std.Out)
		},
	}
}

// printSettings prints the settings of the workload as a table.
func (s *status) printSettings(ctx context.Context, out io.Writer) error {
	rollout, err := s.read(ctx)
	if err != nil {
		return err
	}
	var namespace corev1.Namespace
	if err := s.Get(ctx, types.NamespacedName{Name: s.key.Namespace}, &namespace); err != nil {
		return err
	}
	workload := rollout.Workload()
	effects := append(inplace.LabelEffects(s.kind.Workload.Name, &namespace, workload),
		rollout.Snapshot().Settings.Effects(s.kind.Workload.Name, workload.GetAnnotations())...)
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "SETTING\tVALUE\tFROM\tINSTEAD OF")
	for _, each := range effects {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", each.Name, oneLine(each.Value), each.From, cmp.Or(oneLine(each.InsteadOf), "-"))
	}
	return table.Flush()
}
