// Package argocd evaluates the health of real Deployments with Argo CD's own code, with and without the script of the page.
package argocd

import (
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	appv1 "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/lua"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/stayput/stayput/e2e/neighbours/page"
)

const (
	howTo = "argo-cd-and-flux.md"
	key   = "resource.customizations.health.apps_Deployment"
)

// script returns the script of the ConfigMap argocd-cm that the page shows.
func script(t *testing.T) string {
	t.Helper()
	var settings corev1.ConfigMap
	if err := yaml.UnmarshalStrict([]byte(page.YAML(t, howTo, key)), &settings); err != nil {
		t.Fatal(err)
	}
	if settings.Name != "argocd-cm" || settings.Data[key] == "" {
		t.Fatalf("the ConfigMap %s has no %s", settings.Name, key)
	}
	return settings.Data[key]
}

func TestHealth(t *testing.T) {
	withScript := lua.ResourceHealthOverrides{"apps/Deployment": appv1.ResourceOverride{HealthLua: script(t)}}
	builtIn := lua.ResourceHealthOverrides{}
	for state, input := range page.Deployments {
		for column, overrides := range map[string]lua.ResourceHealthOverrides{"Argo CD": builtIn, "Argo CD with the script": withScript} {
			t.Run(input+"/"+column, func(t *testing.T) {
				got, err := health.GetResourceHealth(page.Object(t, input), overrides)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %s", got.Status, got.Message)
				if want := page.Cell(t, howTo, column, state); string(got.Status) != want {
					t.Errorf("Argo CD says %s (%s), and the page %s", got.Status, got.Message, want)
				}
			})
		}
	}
}

// TestSameMessages says that the script changes nothing but the Deployment that is held at its partition.
func TestSameMessages(t *testing.T) {
	withScript := lua.ResourceHealthOverrides{"apps/Deployment": appv1.ResourceOverride{HealthLua: script(t)}}
	for _, input := range page.Deployments {
		if input == "at-partition" {
			continue
		}
		with, err := health.GetResourceHealth(page.Object(t, input), withScript)
		if err != nil {
			t.Fatal(err)
		}
		without, err := health.GetResourceHealth(page.Object(t, input), nil)
		if err != nil {
			t.Fatal(err)
		}
		if with.Status != without.Status {
			t.Errorf("%s: %s with the script, %s without", input, with.Status, without.Status)
		}
	}
}

// TestApplication reads the Application of the page as strictly as the API server does.
func TestApplication(t *testing.T) {
	var application appv1.Application
	if err := yaml.UnmarshalStrict([]byte(page.YAML(t, "install-gitops.md", "kind: Application")), &application); err != nil {
		t.Fatal(err)
	}
	if source := application.Spec.Source; source.Helm == nil || source.Helm.ValuesIsEmpty() {
		t.Errorf("the Application has no values: %v", source)
	}
}
