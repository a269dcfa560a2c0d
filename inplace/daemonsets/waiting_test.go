package daemonsets_test

import (
	"strings"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

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
