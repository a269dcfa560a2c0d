package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	_ "time/tzdata" // time zones of maintenance windows: the image has none

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "stayput:", err)
		os.Exit(1)
	}
}

// run runs the command that the arguments name, until it is done or ctx ends.
func run(ctx context.Context, arguments []string) error {
	options, err := parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	logger := zap.New(zap.UseFlagOptions(&options.log))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger) // client-go logs through klog
	return options.command(ctx, options)
}
