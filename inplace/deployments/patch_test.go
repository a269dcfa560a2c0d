package deployments_test

import (
	"slices"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

// TestReplicasAnnotations: the Deployment controller compares the annotation of each ReplicaSet with replicas to what the Deployment wants.
// While they differ it only scales, and goes on with nothing else. ReplicaSets without replicas do not matter to it. After a fallback it
// has to scale the only one that has replicas, if that was lowered for a pod that never moved.
func TestReplicasAnnotations(t *testing.T) {
	scaled := func(r *deployments.Rollout) steps.Plan {
		r.Deployment.Spec.Replicas = new(int32(5))
		return r.Plan()
	}
	fallsBack := func(r *deployments.Rollout) steps.Plan { return r.FallBack(inplace.Reason{Code: inplace.CodeRefused}) }
	native := func(r *deployments.Rollout) steps.Plan {
		r.Seen.Mode = inplace.ModeNative
		return scaled(r)
	}
	for name, test := range map[string]struct {
		plan func(*deployments.Rollout) steps.Plan
		want []string
	}{
		"the user scales":                         {scaled, []string{"5", "5", "4"}},
		"marks are removed after the user scales": {native, []string{"5", "5", "4"}},
		"one has no mark to remove": {func(r *deployments.Rollout) steps.Plan {
			delete(r.ReplicaSets[0].Labels, inplace.LabelUpdating)
			return native(r)
		}, []string{"4", "5", "4"}},
		"the update falls back": {fallsBack, []string{"4", "4", "4"}},
		"it does before the first pod has moved": {func(r *deployments.Rollout) steps.Plan {
			a, b := r.ReplicaSets[0], r.ReplicaSets[1]
			r.Seen.Pods, b.Spec.Replicas, b.Status.Replicas = r.Seen.Pods[2:], new(int32), 0
			a.Spec.Replicas = new(int32(1))
			return fallsBack(r)
		}, []string{"1", "4", "4"}},
	} {
		r := twoOfFour(nil, nil, nil, nil)
		r.Seen.Batches = nil
		fixture.ReplicaSetOf(r, "c", fixture.App{Image: "v0"}, 0)
		for _, step := range test.plan(r).Steps {
			if patch, is := step.(steps.PatchReplicaSet); is {
				if err := fixture.Apply(patch.ReplicaSet, patch.Operations); err != nil {
					t.Fatal(err)
				}
			}
		}
		var got []string
		for _, rs := range r.ReplicaSets {
			got = append(got, rs.Annotations[inplace.AnnotationDesired])
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the ReplicaSets say that %q are desired, want %q", name, got, test.want)
		}
	}
}
