package main

import (
	"context"
	"errors"
	"os"
	"time"

	polling "k8s.io/apimachinery/pkg/util/wait"

	"github.com/stayput/stayput/internal/check"
)

// checkPatience is for how long a check is repeated that finds something. Right after an installation, the CA and the leader take a moment.
const checkPatience = 30 * time.Second

// runCheck prints whether Stayput works, and fails if it does not. helm test runs it in a pod of Stayput's namespace. It makes no dry runs:
// its service account may create nothing.
func runCheck(ctx context.Context, o options) error {
	config, err := connection()
	if err != nil {
		return err
	}
	checker, err := check.New(config, o.namespace)
	if err != nil {
		return err
	}
	var report check.Report
	_ = polling.PollUntilContextTimeout(ctx, time.Second, checkPatience, true, func(context.Context) (bool, error) {
		report, err = checker.Check(ctx)
		return err == nil && len(report.Findings) == 0, nil
	}) // its error would only be about time
	if err != nil {
		return err
	}
	if err := report.PrintText(os.Stdout); err != nil {
		return err
	}
	if report.Has(check.Error) || report.Has(check.Unchecked) {
		return errors.New("the check has failed; updates may be native")
	}
	return nil
}
