package apps

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func statefulSet(replicas, start int32, maxUnavailable string) *StatefulSet {
	s := &StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	s.Spec.Replicas, s.Spec.Ordinals = &replicas, &appsv1.StatefulSetOrdinals{Start: start}
	if maxUnavailable != "" {
		most := intstr.Parse(maxUnavailable)
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &most}
	}
	return s
}

func TestOrdinal(t *testing.T) {
	for name, test := range map[string]struct {
		ordinal int
		wanted  bool
	}{
		"web-0": {0, false}, "web-2": {2, true}, "web-10": {10, false}, "web-4": {4, true}, "web-5": {5, false},
		"web": {-1, false}, "web-": {-1, false}, "web--1": {-1, false}, "web-x": {-1, false}, "web-2-3": {-1, false}, "other-2": {-1, false},
		"web-99999999999": {-1, false},
	} {
		s := statefulSet(3, 2, "")
		ordinal := s.Ordinal(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if ordinal != test.ordinal || s.Wants(ordinal) != test.wanted {
			t.Errorf("%s has ordinal %d, wanted %t", name, ordinal, s.Wants(ordinal))
		}
	}
}

// TestPartitionCountsFromTheFirstOrdinal: a partition keeps so many of the wanted pods, whatever their ordinals are. Pods that the
// StatefulSet does not want are condemned, not kept.
func TestPartitionCountsFromTheFirstOrdinal(t *testing.T) {
	for _, test := range []struct {
		start, partition int32
		kept             []int
	}{
		{0, 0, nil}, {0, 2, []int{0, 1}}, {5, 0, nil}, {5, 2, []int{5, 6}}, {5, 3, []int{5, 6, 7}}, {1, 7, []int{1, 2, 3}},
	} {
		s := statefulSet(3, test.start, "")
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &test.partition}
		var kept []int
		for ordinal := -1; ordinal < 10; ordinal++ {
			if s.Keeps(ordinal) {
				kept = append(kept, ordinal)
			}
		}
		if !slices.Equal(kept, test.kept) {
			t.Errorf("from %d on, partition %d keeps %v, want %v", test.start, test.partition, kept, test.kept)
		}
	}
}

// TestStages: a part of the update begins when the partition is lowered, or when the range of ordinals moves down.
func TestStages(t *testing.T) {
	stage := func(start, partition int32) string {
		s := statefulSet(3, start, "")
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}
		return s.Stage()
	}
	if now := stage(5, 2); now == stage(5, 1) || now == stage(3, 2) || now != stage(5, 2) {
		t.Errorf("stages are %s, %s, %s", now, stage(5, 1), stage(3, 2))
	}
}

func TestMaxUnavailableOfAStatefulSet(t *testing.T) {
	for _, test := range []struct {
		value    string
		replicas int32
		want     int
	}{
		{"", 5, 1}, {"2", 5, 2}, {"50%", 5, 2}, {"10%", 5, 1}, {"0", 5, 1},
	} {
		if got := statefulSet(test.replicas, 0, test.value).MaxUnavailable(); got != test.want {
			t.Errorf("%q of %d: %d, want %d", test.value, test.replicas, got, test.want)
		}
	}
}
