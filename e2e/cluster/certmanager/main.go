// Command cert-manager is cert-manager's controllers and its CA injector in one process. cert-manager's own
// binaries cannot be imported and compile in every ACME, Vault and cloud client; these are the same controllers,
// limited to self-signed and CA issuers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	flags := flag.NewFlagSet("cert-manager", flag.ExitOnError) // controller-runtime has a global flag --kubeconfig
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of the cluster (required)")
	health := flags.String("health-address", "127.0.0.1:9403", "where /readyz answers once the process does its work")
	_ = flags.Parse(os.Args[1:]) // exits if it fails
	ctrl.SetLogger(klog.Background())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *health); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the controllers and the injector until ctx ends or one of them fails.
func run(ctx context.Context, kubeconfig, health string) error {
	if kubeconfig == "" {
		return errors.New("--kubeconfig is missing: give the kubeconfig of the cluster to serve")
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return runControllers(ctx, kubeconfig) })
	group.Go(func() error { return runInjector(ctx, kubeconfig, health) })
	return group.Wait()
}
