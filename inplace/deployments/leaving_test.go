package deployments_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// draining returns a Deployment whose old ReplicaSet has so many pods, all out of service, and replicas lowered for some of them.
func draining(pods, lowered int) *deployments.Rollout {
	r := fixture.New(int32(pods), fixture.App{Image: "v2"})
	all := intstr.FromInt(pods)
	r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = &all
	a, b := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, int32(pods)), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
	*a.Spec.Replicas -= int32(lowered)
	a.Labels[inplace.LabelUpdating], b.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
	for i := range pods {
		fixture.PodOf(r, fmt.Sprintf("%02d", i), a, fixture.Out)
	}
	return r
}

// TestLoweredPodsLeaveFirst: the ReplicaSet controller asks for the deletion of every pod for which replicas were lowered. So where a few
// leave, the first one is lowered alone, then the others, and those leave before any more.
func TestLoweredPodsLeaveFirst(t *testing.T) {
	for _, test := range []struct {
		pods, lowered int
		want          string
	}{
		{1, 0, "1 → 0"},
		{1, 1, "move 00"},
		{2, 0, "2 → 0"},
		{3, 0, "3 → 2"},
		{3, 1, "2 → 0"},
		{3, 2, "move 00, move 01"},
		{3, 3, "move 00, move 01, move 02"},
		{32, 0, "32 → 31"},
		{50, 0, "50 → 0"},
		{50, 1, "49 → 0"},
	} {
		steps := draining(test.pods, test.lowered).Plan().Steps
		if planned := strings.TrimPrefix(fixture.Brief(steps), "status, "); planned != test.want {
			t.Errorf("%d pods leave, replicas are lowered by %d: planned %q, want %q", test.pods, test.lowered, planned, test.want)
		}
	}
	if moved := strings.Count(fixture.Brief(draining(50, 32).Plan().Steps), "move"); moved != 32 {
		t.Errorf("50 pods leave, replicas are lowered by 32: %d move", moved)
	}
}

// TestUncreatedPodsArePassedOn: the new ReplicaSet creates the pods that an old one cannot create, and no pod that it has yet to create.
func TestUncreatedPodsArePassedOn(t *testing.T) {
	for name, test := range map[string]struct {
		pods   int
		fails  bool
		change func(*deployments.Rollout)
		want   string
	}{
		"one cannot be created":        {2, true, nil, "3 → 2"},
		"one is yet to be created":     {2, false, nil, ""},
		"all exist":                    {3, true, nil, "out 00"},
		"paused":                       {2, true, func(r *deployments.Rollout) { r.Deployment.Spec.Paused = true }, ""},
		"a partition keeps all":        {2, true, func(r *deployments.Rollout) { r.Seen.Settings.Partition.Value = "3" }, ""},
		"a partition keeps the others": {2, true, func(r *deployments.Rollout) { r.Seen.Settings.Partition.Value = "2" }, "3 → 2"},
	} {
		r := fixture.New(3, fixture.App{Image: "v2"})
		a, b := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 3), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
		a.Labels[inplace.LabelUpdating], b.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
		for i := range test.pods {
			fixture.PodOf(r, fmt.Sprintf("%02d", i), a)
		}
		a.Status.Replicas = int32(test.pods)
		if test.fails {
			a.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue}}
		}
		if test.change != nil {
			test.change(r)
		}
		if planned := strings.TrimPrefix(strings.TrimPrefix(fixture.Brief(r.Plan().Steps), "status"), ", "); planned != test.want {
			t.Errorf("%s: planned %q, want %q", name, planned, test.want)
		}
	}
}
