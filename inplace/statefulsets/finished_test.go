package statefulsets_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/statefulsets"
)

// TestFinished: as for kubectl rollout status, the partition counts pods, whatever their ordinals are.
func TestFinished(t *testing.T) {
	for name, test := range map[string]struct {
		start, partition, updated, available int32
		want                                 bool
	}{
		"all":                               {0, 0, 3, 3, true},
		"one is left":                       {0, 0, 2, 3, false},
		"at the partition":                  {0, 2, 1, 3, true},
		"from 5 on, at the partition":       {5, 2, 1, 3, true},
		"from 5 on, before the partition":   {5, 2, 0, 3, false},
		"from 5 on, all":                    {5, 0, 3, 3, true},
		"from 5 on, one is left":            {5, 0, 2, 3, false},
		"from 1 on, beyond the range":       {1, 7, 0, 3, true},
		"at the partition, one unavailable": {5, 2, 1, 2, false},
	} {
		set := &apps.StatefulSet{}
		set.Spec.Replicas, set.Spec.Ordinals = new(int32(3)), &appsv1.StatefulSetOrdinals{Start: test.start}
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &test.partition}
		set.Status = appsv1.StatefulSetStatus{UpdatedReplicas: test.updated, AvailableReplicas: test.available,
			CurrentRevision: "db-1", UpdateRevision: "db-2"}
		if got := statefulsets.Of(set).Finished(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
