package statefulsets_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
)

// sized gives the containers of the first revision and of the pods a CPU request.
func sized(m *fixture.Members) {
	m.Fleet.Revisions = nil
	m.Edit(fixture.App{Image: "v1", CPU: "100m"})
	m.StatefulSet.Status.CurrentRevision = m.Of().UpdateRevision().Name
	of := m.StatefulSet.Spec.Template.Typed().Spec.Containers[0]
	for _, pod := range m.Fleet.Seen.Pods {
		pod.Labels[inplace.LabelRevisionHash] = m.Of().UpdateRevision().Name
		pod.Spec.Containers[0].Resources, pod.Spec.Containers[0].ResizePolicy = *of.Resources.DeepCopy(), of.ResizePolicy
		m.Kubelet(pod)
	}
	m.Node("n2").Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("150m")}
}

// TestProgressOfInfeasibleResize: db-2 has no room on its node. The StatefulSet controller replaces it when it has its turn. With strategy
// OnDelete no pod waits for that, and the controller replaces it only after the user deletes it.
func TestProgressOfInfeasibleResize(t *testing.T) {
	const no = "cpu of 200m is more than all of node n2, which has 150m"
	for name, test := range map[string]struct {
		change         func(*fixture.Members)
		highest, lower string
	}{
		"OrderedReady":       {func(*fixture.Members) {}, "its turn to be replaced: " + no, "its turn"},
		"Parallel":           {fixture.Parallel, "its turn to be replaced: " + no, "its turn"},
		"OnDelete, in place": {onDeleteInPlace, "its replacement by the StatefulSet controller, after you delete it: " + no, "its turn"},
		"OnDelete":           {onDelete, "its replacement by the StatefulSet controller: " + no, "its replacement by the StatefulSet controller"},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 3, sized, test.change)
			m.Edit(fixture.App{Image: "v1", CPU: "200m"})
			m.Once()
			for i, pod := range m.Of().PodProgress() {
				if want := []string{test.highest, test.lower, test.lower}[i]; pod.Phase != podstate.Waiting || pod.Awaits != want {
					t.Errorf("%s is %s: %s; want %s", pod.Pod.Name, pod.Phase, pod.Awaits, want)
				}
			}
		})
	}
}

// TestReplacementOfInfeasibleResize: the deletion of db-2, which has no room on its node, is not held, and those of lower ordinals are.
func TestReplacementOfInfeasibleResize(t *testing.T) {
	m := fixture.NewMembers(t, 3, sized)
	m.Edit(fixture.App{Image: "v1", CPU: "200m"})
	m.Once()
	for ordinal, want := range []bool{true, true, false} {
		if held, why := m.Of().HoldsDeletion(m.Member(ordinal)); held != want {
			t.Errorf("the deletion of db-%d is held %t: %s", ordinal, held, why.Message)
		}
	}
}
