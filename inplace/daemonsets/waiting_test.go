package daemonsets_test

import (
	"strings"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

// acceptedV2 is what is recorded when the edit to v2 is accepted.
var acceptedV2 = steps.Recorded("in place: restarts app", fixture.App{Image: "v2"}.Template())

// TestALostRevision: one pod's ControllerRevision is gone. In mode in-place-only the others are updated, and then the update waits.
func TestALostRevision(t *testing.T) {
	f := fixture.NewFleet(t, 3)
	f.Seen.Mode = inplace.ModeInPlaceOnly
	f.DaemonSet.Annotations = map[string]string{inplace.AnnotationDecision: acceptedV2}
	f.Seen.Pods[0].Labels[inplace.LabelRevisionHash] = "0"
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	plan := f.Plan()
	if !plan.Decision.Waits || plan.Phase != steps.PhaseStalled || !strings.Contains(plan.Message, "delete the pod, or set the label") {
		t.Errorf("%+v, %s %q", plan.Decision, plan.Phase, plan.Message)
	}
	for i, want := range []string{"0", "2", "2"} {
		if got := f.Seen.Pods[i].Labels[inplace.LabelRevisionHash]; got != want {
			t.Errorf("p%d is %s, not %s", i+1, got, want)
		}
	}
	if held, why := f.HoldsDeletion(f.Seen.Pods[0]); !held {
		t.Errorf("its deletion is not held: %s", why.Message)
	}
	f.Seen.Mode = inplace.ModeInPlace
	f.Once()
	if held, why := f.HoldsDeletion(f.Seen.Pods[0]); held {
		t.Errorf("in mode in-place its deletion is held: %s", why.Message)
	}
}

// TestARefusalWhileAWindowIsClosed: nothing falls back, and the hold is renewed.
func TestARefusalWhileAWindowIsClosed(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Seen.Settings.Partition.Closed = "the window"
	f.Edit(fixture.App{Image: "v2"})
	f.Seen.DryRun.Pod, f.Seen.DryRun.Refused = nil, "no"
	f.Rest()
	f.Expect("mark 1 false false", "mark 2 true false")
	plan := f.Plan()
	if !plan.Decision.Held || plan.Phase != steps.PhaseWindow || !strings.HasSuffix(plan.Message, "no new pod is admitted: no") {
		t.Errorf("held %t, %s %q", plan.Decision.Held, plan.Phase, plan.Message)
	}
	if plan := f.FallBack(inplace.Reason{Code: inplace.CodeFailing, Message: "no"}); !plan.Decision.Held || f.Seen.Fallback.Hash != "" {
		t.Errorf("after two minutes of failing writes: %+v", plan.Decision)
	}
}
