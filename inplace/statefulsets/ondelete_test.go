package statefulsets_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// onDeleteInPlace is a StatefulSet with strategy OnDelete that asks for updates in place.
func onDeleteInPlace(m *fixture.Members) {
	onDelete(m)
	m.StatefulSet.Labels = map[string]string{inplace.LabelUpdate: inplace.InPlace}
}

func TestStepsOnDelete(t *testing.T) {
	v2, env := fixture.App{Image: "v2"}, fixture.App{Image: "v1", Env: "a"}
	for name, test := range map[string]struct {
		change func(*fixture.Members)
		edits  []fixture.App
		want   []string
	}{
		"OrderedReady": {func(*fixture.Members) {}, []fixture.App{v2}, slices.Concat([]string{"mark 2 true false"},
			drained("db-2", "db-2", "v2"), drained("db-1", "db-2", "v2"), drained("db-0", "db-2", "v2"), []string{"mark 2 false false"})},
		"Parallel": {fixture.Parallel, []fixture.App{v2}, slices.Concat([]string{"mark 2 true false"},
			drained("db-2", "db-2", "v2"), drained("db-1", "db-2", "v2"), drained("db-0", "db-2", "v2"), []string{"mark 2 false false"})},
		"not in place": {func(*fixture.Members) {}, []fixture.App{env}, nil},
		"after an edit that is not in place": {func(*fixture.Members) {}, []fixture.App{env, v2}, slices.Concat([]string{"mark 3 true false"},
			drained("db-2", "db-3", "v2"), drained("db-1", "db-3", "v2"), drained("db-0", "db-3", "v2"), []string{"mark 3 false false"})},
		"another value": {func(m *fixture.Members) { m.StatefulSet.Labels[inplace.LabelUpdate] = "yes" }, []fixture.App{v2}, nil},
		"without label": {func(m *fixture.Members) { m.StatefulSet.Labels = nil }, []fixture.App{v2}, nil},
		"not asked for": {func(m *fixture.Members) { m.Rollout.Seen.Mode = inplace.ModeNotOptedIn }, []fixture.App{v2}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 3, onDeleteInPlace, test.change)
			for _, edit := range test.edits {
				m.Edit(edit)
			}
			m.Rest()
			m.Expect(test.want...)
		})
	}
}

// TestOthersDoNotWaitOnDelete: db-2 has a revision that cannot change in place. It keeps it, and the lower ordinals are updated.
func TestOthersDoNotWaitOnDelete(t *testing.T) {
	m := fixture.NewMembers(t, 3, onDeleteInPlace)
	m.Edit(fixture.App{Image: "v1", Env: "a"})
	m.Member(2).Labels[inplace.LabelRevisionHash] = "db-2"
	m.Edit(fixture.App{Image: "v2"})
	m.Once()
	for _, pod := range m.Of().PodProgress() {
		if wants := strings.Contains(pod.Awaits, "you delete it"); wants != (pod.Pod.Name == "db-2") {
			t.Errorf("%s waits for %q", pod.Pod.Name, pod.Awaits)
		}
	}
	plan := m.Rest()
	for ordinal, revision := range []string{"db-3", "db-3", "db-2"} {
		if got := m.Member(ordinal).Labels[inplace.LabelRevisionHash]; got != revision {
			t.Errorf("db-%d has revision %s, not %s", ordinal, got, revision)
		}
	}
	if !strings.HasSuffix(plan.Message, "until you delete it") || plan.Phase != steps.PhaseNative {
		t.Errorf("in the end it is %s: %s", plan.Phase, plan.Message)
	}
}

// TestHoldsNothingOnDelete: a DELETE by the StatefulSet controller is for another reason than the update.
func TestHoldsNothingOnDelete(t *testing.T) {
	for name, change := range map[string]func(*fixture.Members){
		"untouched": func(*fixture.Members) {},
		"updated":   func(m *fixture.Members) { m.Member(2).Labels[inplace.LabelRevisionHash] = "db-2" },
		"fell back": func(m *fixture.Members) {
			m.Fleet.Seen.Fallback = revisions.Fallback{Hash: m.StatefulSet.Spec.Template.Hash(), Code: inplace.CodeRefused}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 3, onDeleteInPlace)
			m.Edit(fixture.App{Image: "v2"})
			change(m)
			held, why := m.Of().HoldsDeletion(m.Member(2))
			if held || why.Code != inplace.CodeOnDelete || !strings.Contains(why.Message, "OnDelete") {
				t.Errorf("held is %t, %+v", held, why)
			}
		})
	}
}

// TestHoldsCleanupOnDelete: no deletion of a pod is held, but that of a revision is as long as a pod is on its way to it. The label of that
// pod names no revision. Without its revision the pod could not go on, and no controller would replace it.
func TestHoldsCleanupOnDelete(t *testing.T) {
	m := fixture.NewMembers(t, 1, onDeleteInPlace)
	m.Last("db-0")
	m.Edit(fixture.App{Image: "v2"})
	second := m.Of().UpdateRevision()
	m.Once()
	m.Once()
	m.Edit(fixture.App{Image: "v3"})
	second.Labels = nil // as if another client had removed the mark
	if label := m.Member(0).Labels[inplace.LabelRevisionHash]; label != podstate.HashPartial {
		t.Fatalf("db-0 has label %s", label)
	}
	if held, why := m.Of().HoldsCleanup(second); !held || why.Message != "pod db-0 has the ControllerRevision" {
		t.Errorf("the deletion of %s is held %t: %s", second.Name, held, why.Message)
	}
	m.Rest()
	if held, why := m.Of().HoldsCleanup(second); held {
		t.Errorf("in the end the deletion of %s is held: %s", second.Name, why.Message)
	}
}

// TestFallBackOnDelete: pods keep their revision, and the StatefulSet controller is not nudged, since it has nothing to do.
func TestFallBackOnDelete(t *testing.T) {
	m := fixture.NewMembers(t, 2, onDeleteInPlace)
	m.Edit(fixture.App{Image: "v2"})
	m.Once()
	plan := m.Of().FallBack(inplace.Reason{Code: inplace.CodeRefused, Message: "a policy refuses it"})
	if want := "a policy refuses it; with strategy OnDelete each pod keeps its revision until you delete it"; plan.Message != want ||
		plan.Decision.Reasons.String() != want || plan.Decision.Reasons[0].Code != inplace.CodeRefused {
		t.Errorf("it says %q", plan.Message)
	}
	for _, step := range plan.Steps {
		m.CarryOut(step)
	}
	m.Fleet.Seen.Fallback = revisions.Fallback{Hash: m.StatefulSet.Spec.Template.Hash(), Code: inplace.CodeRefused}
	m.Fleet.Seen.Now = m.Fleet.Seen.Now.Add(time.Hour)
	if plan := m.Of().Plan(); len(plan.Steps) > 0 || plan.After > 0 {
		t.Errorf("later there are %d steps, and a look after %s", len(plan.Steps), plan.After)
	}
	if nudges := m.Of().Nudge(); len(nudges) > 0 {
		t.Errorf("at shutdown there are %d steps", len(nudges))
	}
	if slices.ContainsFunc(m.Of().Seen.Pods, func(pod *corev1.Pod) bool { return pod.Annotations[inplace.AnnotationNudged] != "" }) {
		t.Error("a pod is annotated")
	}
}

// TestEditOnDelete: an edit that cannot be made in place changes no pod, and in-place-only rejects it.
func TestEditOnDelete(t *testing.T) {
	for name, test := range map[string]struct {
		mode               inplace.Mode
		edit               fixture.App
		inPlace, forbidden bool
		says               string
	}{
		"in place":                {inplace.ModeInPlace, fixture.App{Image: "v2"}, true, false, "in place"},
		"not in place":            {inplace.ModeInPlace, fixture.App{Image: "v1", Env: "a"}, false, false, "until you delete it"},
		"in-place-only":           {inplace.ModeInPlaceOnly, fixture.App{Image: "v1", Env: "a"}, false, true, "until you delete it"},
		"in-place-only, in place": {inplace.ModeInPlaceOnly, fixture.App{Image: "v2"}, true, false, "in place"},
		"opted out":               {inplace.ModeNative, fixture.App{Image: "v2"}, false, false, "recreate: "},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 3, onDeleteInPlace)
			before := m.StatefulSet.Spec.Template
			m.Edit(test.edit)
			m.Rollout.Seen.Mode = test.mode
			preview := m.Of().Preview(before)
			if preview.InPlace() != test.inPlace || preview.Forbidden != test.forbidden || !strings.Contains(preview.String(), test.says) {
				t.Errorf("it says %q, forbidden %t", preview.String(), preview.Forbidden)
			}
		})
	}
}
