package daemonsets_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// onDeleteInPlace is a DaemonSet with strategy OnDelete that asks for updates in place.
func onDeleteInPlace(f *fixture.Fleet) {
	f.DaemonSet.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	f.DaemonSet.Labels = map[string]string{inplace.LabelUpdate: inplace.InPlace}
}

func TestStepsOnDelete(t *testing.T) {
	three := intstr.FromInt32(3)
	all := []string{"mark 2 true false", "out p1", "p1 is 2 app=v2",
		"out p2", "p2 is 2 app=v2", "mark 2 false false"}
	for name, test := range map[string]struct {
		change func(*fixture.Fleet)
		edit   fixture.App
		want   []string
	}{
		"one at a time": {func(*fixture.Fleet) {}, fixture.App{Image: "v2"}, all},
		"what RollingUpdate would allow": {func(f *fixture.Fleet) {
			f.DaemonSet.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &three, MaxSurge: &three}
		}, fixture.App{Image: "v2"}, all},
		"not in place":  {func(*fixture.Fleet) {}, fixture.App{Image: "v1", Env: "a"}, nil},
		"without label": {func(f *fixture.Fleet) { f.DaemonSet.Labels = nil }, fixture.App{Image: "v2"}, nil},
		"another value": {func(f *fixture.Fleet) { f.DaemonSet.Labels[inplace.LabelUpdate] = "true" }, fixture.App{Image: "v2"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 2, onDeleteInPlace, test.change)
			f.Edit(test.edit)
			f.Rest()
			f.Expect(test.want...)
		})
	}
}

// TestHoldsNothingOnDelete: a DELETE by the DaemonSet controller is for another reason than the update.
func TestHoldsNothingOnDelete(t *testing.T) {
	f := fixture.NewFleet(t, 2, onDeleteInPlace)
	f.Edit(fixture.App{Image: "v2"})
	f.Once()
	if held, why := f.HoldsDeletion(f.Seen.Pods[0]); held || why.Code != inplace.CodeOnDelete {
		t.Errorf("held is %t, %+v", held, why)
	}
}
