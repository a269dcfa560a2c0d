package apps

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestDeploymentStrategy: how many of ten pods may be unavailable and how many more there may be, as in pkg/controller/deployment/util.
func TestDeploymentStrategy(t *testing.T) {
	of := func(text string) *intstr.IntOrString {
		if text == "" {
			return nil
		}
		value := intstr.Parse(text)
		return &value
	}
	recreate := appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	bare := appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType}
	rolling := func(unavailable, surge string) appsv1.DeploymentStrategy {
		return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: of(unavailable), MaxSurge: of(surge)}}
	}
	for _, test := range []struct {
		strategy           appsv1.DeploymentStrategy
		replicas           int32
		unavailable, surge int32
		zero               bool // the user wrote that none may be unavailable
	}{
		{rolling("25%", "25%"), 10, 2, 3, false}, // one is rounded down, and the other one up
		{rolling("3", "0"), 10, 3, 0, false},
		{rolling("30", "30"), 10, 10, 30, false},
		{rolling("3", "3"), 0, 0, 3, false},
		{rolling("0", "1"), 10, 0, 1, true},
		{rolling("0%", "1"), 10, 0, 1, true},
		{rolling("1%", "1"), 10, 0, 1, false},
		{rolling("0", "0"), 10, 1, 0, true}, // as natively, although the API server rejects it
		{rolling("", "1"), 10, 0, 1, false},
		{rolling("x", "1"), 10, 0, 1, false},
		{bare, 10, 1, 0, false},
		{recreate, 10, 0, 0, false},
	} {
		d := &Deployment{}
		d.Spec.Replicas, d.Spec.Strategy = &test.replicas, test.strategy
		if d.MaxUnavailable() != test.unavailable || d.MaxSurge() != test.surge || ExplicitZero(d) != test.zero {
			t.Errorf("%+v of %d: %d unavailable, %d more, zero is explicit: %t", test.strategy, test.replicas, d.MaxUnavailable(), d.MaxSurge(),
				ExplicitZero(d))
		}
	}
}
