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
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the cluster (required)")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run keeps the controllers and the injector going until ctx ends or one of them fails.
func run(ctx context.Context, kubeconfig string) error {
	if kubeconfig == "" {
		return errors.New("--kubeconfig is missing: give the kubeconfig of the cluster to serve")
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return runControllers(ctx, kubeconfig) })
	group.Go(func() error { return runInjector(ctx, kubeconfig) })
	return group.Wait()
}
