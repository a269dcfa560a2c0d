package main

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/stayput/stayput/internal/check"
)

// checkPatience is for how long a check is repeated that finds something. Right after an installation, the CA and the leader take a moment.
const checkPatience = 30 * time.Second

// runCheck prints whether Stayput works, and fails if it does not. helm test runs it in a pod of Stayput's namespace, so it also looks at
// the certificate that managers show. It makes no dry runs: its service account may create nothing.
func runCheck(ctx context.Context, o options) error {
	config, err := connection()
	if err != nil {
		return err
	}
	reader, err := check.NewReader(config, o.namespace)
	if err != nil {
		return err
	}
	reader.Dial = (&net.Dialer{}).DialContext
	report, err := reader.CheckUntilGood(ctx, checkPatience)
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
