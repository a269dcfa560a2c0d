package main

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stayput/stayput/internal/version"
)

// tellVersion prints the version and the commit of this build.
func tellVersion(context.Context, options) error {
	_, err := fmt.Println(version.Get())
	return err
}

// announce logs which build this manager is, and registers that as a metric.
func announce() error {
	build := version.Get()
	ctrl.Log.Info("Starting", "version", build.Version, "commit", build.Commit, "date", build.Date, "go", build.Go)
	return version.Register(metrics.Registry)
}
