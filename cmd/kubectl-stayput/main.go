// Command kubectl-stayput is kubectl's plugin for Stayput. It only reads.
//
//	kubectl stayput status    who leads, what is updated in place and how the last edit of each workload is carried out
//	kubectl stayput version   which build this is
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stayput/stayput/version"
)

const usage = `kubectl stayput status [flags]   who leads, what is updated in place and how the last edits are carried out
kubectl stayput version          which build this is

Flags: --namespace of Stayput itself (stayput-system), --kubeconfig, --context.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubectl stayput:", err)
		os.Exit(1)
	}
}

// run does what the arguments ask for.
func run(ctx context.Context, arguments []string, out io.Writer) error {
	if len(arguments) == 0 {
		_, err := io.WriteString(out, usage)
		return err
	}
	switch command := arguments[0]; command {
	case "version":
		_, err := fmt.Fprintln(out, "kubectl-"+version.Get().String())
		return err
	case "status":
		return runStatus(ctx, arguments[1:], out)
	case "help", "-h", "--help":
		_, err := io.WriteString(out, usage)
		return err
	default:
		return fmt.Errorf("unknown command %q; it is status or version", command)
	}
}

func runStatus(ctx context.Context, arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("kubectl stayput status", flag.ContinueOnError)
	own := flags.String("namespace", "stayput-system", "`namespace` in which Stayput runs")
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	overrides := &clientcmd.ConfigOverrides{}
	flags.StringVar(&rules.ExplicitPath, "kubeconfig", "", "`file` to use instead of $KUBECONFIG")
	flags.StringVar(&overrides.CurrentContext, "context", "", "`name` of the kubeconfig's context")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	return status{Interface: clients, metadata: objects, own: *own, now: time.Now()}.print(ctx, out)
}
