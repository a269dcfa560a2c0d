package commands

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

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
		Args: noArguments,
		RunE: func(kubectl *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(kubectl.OutOrStdout(), kubectlScript)
			return err
		},
	})
}

// mustComplete registers how a flag of the command is completed.
func mustComplete(command *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the command has no such flag
	}
}

// completeFlags registers how kubectl's flags are completed.
func (c *connection) completeFlags(plugin *cobra.Command) {
	namespaces := completes(func(ctx context.Context, _ []string, _ string) []string {
		return c.names(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), "")
	})
	mustComplete(plugin, "namespace", namespaces)
	mustComplete(plugin, "stayput-namespace", namespaces)
	for flag, names := range map[string]func(api.Config) []string{
		"context": func(from api.Config) []string { return slices.Collect(maps.Keys(from.Contexts)) },
		"cluster": func(from api.Config) []string { return slices.Collect(maps.Keys(from.Clusters)) },
		"user":    func(from api.Config) []string { return slices.Collect(maps.Keys(from.AuthInfos)) },
	} {
		mustComplete(plugin, flag, completes(func(context.Context, []string, string) []string {
			config, err := c.ToRawKubeConfigLoader().RawConfig()
			if err != nil {
				return nil
			}
			return names(config)
		}))
	}
}

// completeWorkload completes the arguments of status, as "deploy/web" or as "deploy web".
func (c *connection) completeWorkload() cobra.CompletionFunc {
	return completes(func(ctx context.Context, before []string, word string) []string {
		called, _, named := strings.Cut(word, "/")
		switch kind, known := kindCalled(called); {
		case len(before) == 0 && !named:
			return c.workloads(ctx)
		case len(before) == 0 && known:
			return c.workloadsOf(ctx, kind, called+"/")
		case len(before) == 1:
			if kind, known := kindCalled(before[0]); known {
				return c.workloadsOf(ctx, kind, "")
			}
		}
		return nil
	})
}

// workloads returns the workloads of all kinds, as "deployment/web".
func (c *connection) workloads(ctx context.Context) []string {
	var all []string
	for _, kind := range observe.Kinds {
		all = append(all, c.workloadsOf(ctx, kind, strings.ToLower(kind.Workload.Name)+"/")...)
	}
	return all
}

// workloadsOf returns the names of the workloads of a kind, each after the prefix.
func (c *connection) workloadsOf(ctx context.Context, kind observe.Kind, prefix string) []string {
	namespace, _, err := c.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil
	}
	found := c.names(ctx, kind.Workload.Resource(), namespace)
	for i, name := range found {
		found[i] = prefix + name
	}
	return found
}

// patience is how long a completion waits for the API server.
const patience = 3 * time.Second

// completes returns a completion with those of the candidates that begin with the word.
func completes(candidates func(ctx context.Context, before []string, word string) []string) cobra.CompletionFunc {
	return func(command *cobra.Command, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, stop := context.WithTimeout(command.Context(), patience)
		defer stop()
		fit := slices.DeleteFunc(candidates(ctx, before, word), func(candidate string) bool { return !strings.HasPrefix(candidate, word) })
		slices.Sort(fit)
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// names returns the names of objects in the cluster; none if they cannot be listed, because a completion must not print an error.
func (c *connection) names(ctx context.Context, of schema.GroupVersionResource, namespace string) []string {
	config, err := c.config(rest.NoWarnings{})
	if err != nil {
		return nil
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil
	}
	list, err := objects.Resource(of).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var names []string
	for _, each := range list.Items {
		names = append(names, each.Name)
	}
	return names
}
