// Command kubectl-stayput is kubectl's plugin for Stayput. It changes nothing: plan asks the API server in dry runs.
//
//	kubectl stayput plan -f FILE       show what kubectl apply would do to running pods; also -k DIR, -f - and -o json
//	kubectl stayput status             show the leader, which workloads are updated in place, and how the last edit of each is carried out
//	kubectl stayput status deploy/web  show each pod, how far its update is and what it waits for; also --watch
//	kubectl stayput audit -A           show what Stayput would have done with the rollouts in the cluster's history; needs no Stayput there
//	kubectl stayput version            show which build this is
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stayput/stayput/version"
)

const usage = `kubectl stayput plan -f FILE|-|-k DIR   what kubectl apply would do to running pods, without doing it; exit code 0: in place, 2: recreate, 1: error
kubectl stayput status                 the leader, what is updated in place and how the last edits are carried out
kubectl stayput status deploy/NAME     pod by pod, how far an update is and what it waits for; also of daemonset/NAME
kubectl stayput audit                  what Stayput would have done with past rollouts; needs no Stayput in the cluster
kubectl stayput version                which build this is

kubectl stayput COMMAND --help lists the flags; those of kubectl that say which cluster and namespace are among them.
`

// streams are the standard input, output and error of a command.
type streams = genericiooptions.IOStreams

// exit is an exit code as an error. It is not printed.
type exit int

// Error implements error.
func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], streams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	if code := codeOf(err, os.Stderr); code != 0 {
		os.Exit(code)
	}
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

// run runs the command that the arguments name.
func run(ctx context.Context, arguments []string, std streams) error {
	if len(arguments) == 0 {
		arguments = []string{"help"}
	}
	switch command := arguments[0]; command {
	case "version":
		_, err := fmt.Fprintln(std.Out, "kubectl-"+version.Get().String())
		return err
	case "status":
		return asked(runStatus(ctx, arguments[1:], std))
	case "plan":
		return asked(runPlan(ctx, arguments[1:], std))
	case "audit":
		return asked(runAudit(ctx, arguments[1:], std))
	case "help", "-h", "--help":
		_, err := fmt.Fprint(std.Out, usage)
		return err
	default:
		return fmt.Errorf("unknown command %q; it is plan, status, audit or version", command)
	}
}

// asked returns the error of a command, or nil if it only says that the user asked for the flags (--help), which have been printed.
func asked(err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	return err
}

// flagsOf returns an empty flag set for a command.
func flagsOf(command string, out io.Writer) *pflag.FlagSet {
	flags := pflag.NewFlagSet("kubectl stayput "+command, pflag.ContinueOnError)
	flags.SetOutput(out)
	return flags
}
