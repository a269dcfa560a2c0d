package deployments_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

func TestLooksComplete(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*appsv1.DeploymentStatus)
		want   bool
	}{
		"complete":           {func(*appsv1.DeploymentStatus) {}, true},
		"with surge pods":    {func(s *appsv1.DeploymentStatus) { s.Replicas, s.UpdatedReplicas, s.AvailableReplicas = 4, 4, 4 }, true},
		"edited since":       {func(s *appsv1.DeploymentStatus) { s.ObservedGeneration = 1 }, false},
		"one is missing":     {func(s *appsv1.DeploymentStatus) { s.Replicas, s.UpdatedReplicas, s.AvailableReplicas = 2, 2, 2 }, false},
		"an old one is left": {func(s *appsv1.DeploymentStatus) { s.Replicas = 4 }, false},
		"one is unavailable": {func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 2 }, false},
	} {
		d := fixture.NewDeployment(3, fixture.App{Image: "v2"})
		d.Generation = 2
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}
		if test.change(&d.Status); deployments.LooksComplete(d, d.Status) != test.want {
			t.Errorf("%s: looks complete is %t", name, !test.want)
		}
	}
}

// TestDone: old ReplicaSets have no pods left, and the status is complete.
func TestDone(t *testing.T) {
	for name, test := range map[string]struct {
		old       int32
		available int32
		want      bool
	}{
		"done":               {0, 3, true},
		"an old one is left": {1, 3, false},
		"one is unavailable": {0, 2, false},
	} {
		r := fixture.New(3, fixture.App{Image: "v2"})
		fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, test.old)
		fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 3)
		r.Deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: test.available}
		if r.Done() != test.want {
			t.Errorf("%s: done is %t", name, !test.want)
		}
	}
}
