// Package commands are the commands of kubectl's plugin. Each has a file of its own name, with a function that returns it; New lists them.
package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

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
			"partition of the workload that you name, and annotations of the workload or pod. check --prove creates a namespace, and\n" +
			"deletes it again. The other commands read, or ask the API server in dry runs.",
		Args:          knownCommand,
		RunE:          func(plugin *cobra.Command, _ []string) error { return plugin.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,

		SuggestionsMinimumDistance: 2, // cobra's own default, which SuggestionsFor does not know
	}
	plugin.SetIn(std.In)
	plugin.SetOut(std.Out)
	plugin.SetErr(std.ErrOut)
	cluster := connect(plugin.PersistentFlags())
	cluster.completeFlags(plugin)
	plugin.AddCommand(newPlan(cluster, std), newStatus(cluster, std), newSettings(cluster, std), newPromote(cluster, std),
		newRestart(cluster, std), newAudit(cluster, std), newCheck(cluster, std), newVersion(std))
	addCompletion(plugin)
	return plugin
}

func newVersion(std streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show which build this is",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(std.Out, "kubectl-"+version.Get().String())
			return err
		},
	}
}

// knownCommand returns an error if there is an argument: it is the name of a command that does not exist.
func knownCommand(plugin *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	if similar := plugin.SuggestionsFor(arguments[0]); len(similar) > 0 {
		return fmt.Errorf("unknown command %q; did you mean %s?", arguments[0], strings.Join(similar, " or "))
	}
	var names []string
	for _, each := range plugin.Commands() {
		names = append(names, each.Name())
	}
	last := len(names) - 1
	return fmt.Errorf("unknown command %q; it is %s or %s", arguments[0], strings.Join(names[:last], ", "), names[last])
}

// noArguments returns an error if there is an argument.
func noArguments(_ *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("unexpected argument %q", arguments[0])
	}
	return nil
}
