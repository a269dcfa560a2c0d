package commands

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/internal/observe"
)

// kubectlScript is what kubectl runs to complete the arguments of its plugin.
//
//go:embed kubectl_complete-stayput
var kubectlScript string

// addCompletion adds cobra's own command completion, and to that the script for kubectl.
func addCompletion(plugin *cobra.Command) {
	plugin.InitDefaultCompletionCmd()
	completion, _, err := plugin.Find([]string{"completion"})
	if err != nil {
		panic(err) // it has just been added
	}
	completion.Short = "Print a completion script for kubectl or a shell"
	completion.AddCommand(&cobra.Command{
		Use:   "kubectl",
		Short: "Print the program by which kubectl completes the arguments of kubectl stayput",
		Long: "Print the program by which kubectl completes the arguments of kubectl stayput.\n" +
			"It needs the name kubectl_complete-stayput, and a place on the PATH. kubectl's own completion has to be set up for the shell.",
		Example: "  kubectl stayput completion kubectl > /usr/local/bin/kubectl_complete-stayput\n" +
			"  chmod +x /usr/local/bin/kubectl_complete-stayput",
		Args: cobra.NoArgs,
		RunE: func(kubectl *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(kubectl.OutOrStdout(), kubectlScript)
			return err
		},
	})
}

// patience is how long a completion waits for the API server.
const patience = 3 * time.Second

// completeWorkload completes the arguments of status, as "deploy/web" or as "deploy web". It prints no error. The shell chooses those that
// begin with the word.
func (c *connection) completeWorkload() cobra.CompletionFunc {
	return func(command *cobra.Command, before []string, word string) (fit []cobra.Completion, _ cobra.ShellCompDirective) {
		ctx, stop := context.WithTimeout(command.Context(), patience)
		defer stop()
		called, _, named := strings.Cut(word, "/")
		kind, known := kindCalled(called)
		switch {
		case len(before) == 0 && named && known:
			fit = c.names(ctx, kind, called+"/")
		case len(before) == 0 && !named:
			for _, kind := range observe.Kinds {
				fit = append(fit, c.names(ctx, kind, strings.ToLower(kind.Workload.Name)+"/")...)
			}
		case len(before) == 1:
			if kind, known := kindCalled(before[0]); known {
				fit = c.names(ctx, kind, "")
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// names returns the names of the workloads of a kind, each after the prefix.
func (c *connection) names(ctx context.Context, kind observe.Kind, prefix string) (all []string) {
	namespace, _, err := c.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil
	}
	from, err := c.client(rest.NoWarnings{})
	if err != nil {
		return nil
	}
	found, _ := listMeta(ctx, from, kind.Workload, client.InNamespace(namespace)) // nothing if it fails
	for _, each := range found {
		all = append(all, prefix+each.Name)
	}
	return all
}
