// Package flux evaluates real Deployments with kstatus, by which Flux decides whether what it has applied is healthy.
package flux

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/stayput/stayput/e2e/neighbours/page"
)

const howTo = "argo-cd-and-flux.md"

func TestHealth(t *testing.T) {
	for state, input := range page.Deployments {
		t.Run(input, func(t *testing.T) {
			got, err := status.Compute(page.Object(t, input))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %s", got.Status, got.Message)
			if want := page.Cell(t, howTo, "Flux", state); string(got.Status) != want {
				t.Errorf("kstatus says %s (%s), and the page %s", got.Status, got.Message, want)
			}
		})
	}
}
