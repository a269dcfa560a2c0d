package statefulsets_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// acceptedV2 is what is recorded when the edit to v2 is accepted.
var acceptedV2 = steps.Recorded("in place: restarts app", fixture.App{Image: "v2"}.Template())

// TestALostRevision: the ControllerRevision of pods that a partition kept is deleted, and the partition is lowered. What these pods
// have is not known. Where no pod is to be replaced, they wait, and the update says why and what to do; otherwise the controller
// replaces them.
func TestALostRevision(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *fixture.Members)
		waits  bool
		phase  steps.Phase
	}{
		"in-place-only": {func(m *fixture.Members) { m.Rollout.Seen.Mode = inplace.ModeInPlaceOnly }, true, steps.PhaseStalled},
		"in-place-only, not accepted": {func(m *fixture.Members) {
			m.Rollout.Seen.Mode = inplace.ModeInPlaceOnly
			delete(m.StatefulSet.Annotations, inplace.AnnotationDecision)
		}, false, steps.PhaseNative},
		"in place": {func(*fixture.Members) {}, false, steps.PhaseNative},
		"in place, and a window is closed": {func(m *fixture.Members) { m.Rollout.Seen.Settings.Partition.Closed = "the window" }, true,
			steps.PhaseWindow},
	} {
		m := fixture.NewMembers(t, 3, fixture.Rolling(2, ""))
		m.StatefulSet.Annotations = map[string]string{inplace.AnnotationDecision: acceptedV2}
		m.Edit(fixture.App{Image: "v2"})
		m.Rest()
		m.Fleet.Revisions = slices.DeleteFunc(m.Fleet.Revisions, func(r *apps.ControllerRevision) bool { return r.Name == "db-1" })
		*m.StatefulSet.Spec.UpdateStrategy.RollingUpdate.Partition = 0
		test.change(m)
		m.Once()
		plan := m.Once()
		says := strings.Contains(plan.Message, "the ControllerRevision of pod db-1 is gone")
		if plan.Decision.Held != test.waits || plan.Phase != test.phase || !says {
			t.Errorf("%s: held %t, %s %q", name, plan.Decision.Held, plan.Phase, plan.Message)
		}
		for ordinal := range 2 {
			if held, why := m.Of().HoldsDeletion(m.Member(ordinal)); held != test.waits {
				t.Errorf("%s: the deletion of pod %d is held: %t, %s", name, ordinal, held, why.Message)
			}
		}
		if marked := revisions.Updating(m.Of().UpdateRevision()); marked != test.waits { // the hold is renewed
			t.Errorf("%s: the update revision is marked: %t", name, marked)
		}
		for _, pod := range m.Of().PodProgress() {
			if told := strings.Contains(pod.Awaits, "is gone"); test.phase == steps.PhaseStalled && pod.Pod.Name != "db-2" && !told {
				t.Errorf("%s: pod %s waits for %q", name, pod.Pod.Name, pod.Awaits)
			}
		}
	}
}

// TestALostRevisionIsFreed: what the update says ends the wait.
func TestALostRevisionIsFreed(t *testing.T) {
	m := fixture.NewMembers(t, 2)
	m.Rollout.Seen.Mode = inplace.ModeInPlaceOnly
	m.StatefulSet.Annotations = map[string]string{inplace.AnnotationDecision: acceptedV2}
	m.Edit(fixture.App{Image: "v2"})
	m.Fleet.Revisions = m.Fleet.Revisions[1:]
	if plan := m.Rest(); !plan.Decision.Waits || !strings.Contains(plan.Message, "delete the pod, or set the label to in-place") {
		t.Fatalf("it does not wait: %s %q", plan.Phase, plan.Message)
	}
	m.Rollout.Seen.Mode = inplace.ModeInPlace
	m.Once()
	if held, why := m.Of().HoldsDeletion(m.Member(1)); held {
		t.Errorf("the controller may not replace the pod: %s", why.Message)
	}
}

// TestOnePodThatCannotBeUpdatedInPlace: the others do not wait for it, and it is not replaced.
func TestOnePodThatCannotBeUpdatedInPlace(t *testing.T) {
	m := fixture.NewMembers(t, 3)
	m.Rollout.Seen.Mode = inplace.ModeInPlaceOnly
	m.StatefulSet.Annotations = map[string]string{inplace.AnnotationDecision: acceptedV2}
	m.Member(2).Labels[inplace.LabelRevisionHash] = "db-0"
	m.Edit(fixture.App{Image: "v2"})
	plan := m.Rest()
	for ordinal, want := range []string{"db-2", "db-2", "db-0"} {
		if got := m.Member(ordinal).Labels[inplace.LabelRevisionHash]; got != want {
			t.Errorf("pod %d is %s, not %s", ordinal, got, want)
		}
	}
	if held, _ := m.Of().HoldsDeletion(m.Member(2)); !held || plan.Phase != steps.PhaseStalled {
		t.Errorf("it is held %t, %s %q", held, plan.Phase, plan.Message)
	}
}
