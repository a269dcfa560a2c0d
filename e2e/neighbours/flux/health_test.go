// Package flux evaluates real Deployments with kstatus, by which Flux decides whether what it has applied is healthy.
package flux

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/yaml"

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

// TestObjects reads the objects of the page as strictly as the API server does.
func TestObjects(t *testing.T) {
	for kind, object := range map[string]any{"GitRepository": &sourcev1.GitRepository{}, "HelmRelease": &helmv2.HelmRelease{}} {
		if err := yaml.UnmarshalStrict([]byte(page.YAML(t, "install-gitops.md", "kind: "+kind+"\n")), object); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
