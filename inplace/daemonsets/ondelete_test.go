package daemonsets_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
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

// TestEditOnDelete: users are told once what becomes of pods that cannot be updated in place, also if an earlier edit is the reason. If
// Stayput does not manage the DaemonSet, it says only that.
func TestEditOnDelete(t *testing.T) {
	const kept = "/spec/containers/0/env added; with strategy OnDelete each pod keeps its revision until you delete it"
	const group = "a LeaderWorkerSet recreates its pods group by group; with strategy OnDelete each pod keeps its revision until you delete it"
	llm := func(image string) fixture.App { return fixture.App{Image: image, Group: "llm"} }
	env, both := fixture.App{Image: "v1", Env: "a"}, fixture.App{Image: "v2", Env: "a"}
	for name, test := range map[string]struct {
		mode  inplace.Mode
		edits []fixture.App
		want  string
	}{
		"in place":                           {inplace.ModeInPlace, []fixture.App{{Image: "v2"}}, ""},
		"not in place":                       {inplace.ModeInPlace, []fixture.App{env}, kept},
		"after an edit that is not in place": {inplace.ModeInPlace, []fixture.App{env, both}, kept},
		"a group":                            {inplace.ModeInPlace, []fixture.App{llm("v1"), llm("v2")}, group},
		"not managed": {inplace.ModeNone, []fixture.App{env},
			"not updated in place: the namespace has no label stayput.dev/update, or its value is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 2, onDeleteInPlace)
			f.Seen.Mode = test.mode
			var before apps.Template
			for _, edit := range test.edits {
				before = f.DaemonSet.Spec.Template
				f.Edit(edit)
			}
			if told := f.DecideEdit(before).Reasons.String(); told != test.want {
				t.Errorf("users are told %q, want %q", told, test.want)
			}
		})
	}
}
