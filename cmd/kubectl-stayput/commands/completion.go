package commands

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/internal/observe"
)

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
