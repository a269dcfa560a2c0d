// Command kubectl-stayput is kubectl's plugin for Stayput. Its commands promote and restart write the partition of a workload, and
// annotations of a workload; check --prove creates a namespace and deletes it. The others change nothing. Package commands describes
// its commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // time zones of maintenance windows, as the managers know them

	"github.com/go-logr/logr"
	"github.com/moby/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stayput/stayput/cmd/kubectl-stayput/commands"
)

func main() {
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	in, out, errs := term.StdStreams() // on Windows, they understand colours
	code := commands.Run(ctx, os.Args[1:], genericiooptions.IOStreams{In: in, Out: out, ErrOut: errs})
	stop()
	os.Exit(code)
}
