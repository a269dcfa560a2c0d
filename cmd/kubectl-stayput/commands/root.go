// Package commands are the commands of kubectl's plugin. Each has a file of its own name, with a function that returns it; New lists them.
package commands

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stayput/stayput/internal/version"
)

// streams are the standard input, output and error of a command.
type streams = genericiooptions.IOStreams

// exit is an exit code as an error. It is not printed.
type exit int

// Error implements error.
func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Run runs the command that the arguments name. It prints the error, if there is one, and returns the exit code.
func Run(ctx context.Context, arguments []string, std streams) int {
	std.Out, std.ErrOut = escaped{std.Out}, escaped{std.ErrOut}
	plugin := New(std)
	plugin.SetArgs(arguments)
	return codeOf(plugin.ExecuteContext(ctx), std.ErrOut)
}

// codeOf returns the exit code for an error. It prints the error unless that is only an exit code.
func codeOf(err error, messages io.Writer) int {
	var code exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintln(messages, "kubectl stayput:", err)
	return int(exitFailed)
}

// New returns the plugin with all its commands.
func New(std streams) *cobra.Command {
	plugin := &cobra.Command{
		Use:         "kubectl-stayput",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl stayput"},
		Short:       "Plan and follow updates made in running pods, and restart their containers",
		Long: "Plan and follow updates made in running pods, and restart their containers. Only promote and restart change anything: the\n" +
			"partition of the workload that you name, and annotations of it. check --prove creates a namespace, and\n" +
			"deletes it again. The other commands read, or ask the API server in dry runs.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	plugin.SetIn(std.In)
	plugin.SetOut(std.Out)
	plugin.SetErr(std.ErrOut)
	cluster := connect(plugin.PersistentFlags())
	plugin.AddCommand(newPlan(cluster, std), newStatus(cluster, std), newSettings(cluster, std), newPromote(cluster, std),
		newRestart(cluster, std), newAudit(cluster, std), newCheck(cluster, std), newVersion(std))
	return plugin
}

func newVersion(std streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show which build this is",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(std.Out, "kubectl-"+version.Get().String())
			return err
		},
	}
}
