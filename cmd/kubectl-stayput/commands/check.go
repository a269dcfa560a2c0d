package commands

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/stayput/stayput/internal/check"
)

// exitWrong is the exit code of check if something is wrong.
const exitWrong exit = 2

func newCheck(cluster *connection, std streams) *cobra.Command {
	var as output
	var prove bool
	command := &cobra.Command{
		Use:   "check",
		Short: "Check the cluster, and Stayput if it is installed",
		Long: "Check whether the cluster is right for Stayput and, if Stayput is installed, whether it works.\n" +
			"Each finding says what is wrong and what mends it.\n" +
			"With --prove, the Deployment controller proves that the native controllers have user names, which Stayput needs. That needs\n" +
			"no installation and starts no pod: it creates a namespace with a Deployment, and a policy for it, and deletes both.\n" +
			"Exit code 0: nothing is wrong, apart from warnings; 2: something is; 1: something could not be checked.",
		Example: "  kubectl stayput check\n  kubectl stayput check --prove\n  kubectl stayput check -o json",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runCheck(command.Context(), cluster, prove, as, std)
		},
	}
	command.Flags().BoolVar(&prove, "prove", false, "have a native controller prove its user name, in a namespace that is deleted again")
	as.register(command)
	return command
}

// runCheck prints what the check finds. It returns an exit code as an error unless nothing is wrong.
func runCheck(ctx context.Context, cluster *connection, prove bool, as output, std streams) error {
	config, err := cluster.config(rest.NoWarnings{})
	if err != nil {
		return err
	}
	checker, err := check.New(config, cluster.own)
	if err != nil {
		return err
	}
	checker.DryRuns, checker.Prove = true, prove
	report, err := checker.Check(ctx)
	if err != nil {
		return err
	}
	if err := as.print(std.Out, report, report.PrintText); err != nil {
		return err
	}
	return exitCodeOf(report)
}

func exitCodeOf(report check.Report) error {
	switch {
	case report.Has(check.Error):
		return exitWrong
	case report.Has(check.Unchecked):
		return exitFailed
	}
	return nil
}
