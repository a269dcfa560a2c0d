package deployments_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

// during returns a Deployment of 4 in the middle of an update, at a moment before or in its maintenance window: p and q have the update
// revision, r and s the old one, which they had when the update began.
func during(window inplace.Window) *deployments.Rollout {
	rollout := twoOfFour(nil, nil, nil, nil)
	for _, rs := range rollout.ReplicaSets {
		if rs.Name == "web-a" {
			rs.Labels[inplace.LabelCurrent] = rs.Labels[inplace.LabelUpdating]
		}
	}
	rollout.Seen.Settings, rollout.Seen.Batches = rollout.Seen.Settings.During(window, rollout.Seen.Now), nil
	return rollout
}

// TestAClosedWindowHolds: no pod begins, the update stays held, the status says until when, and the next look is when the window opens.
func TestAClosedWindowHolds(t *testing.T) {
	now := twoOfFour(nil, nil, nil, nil).Seen.Now.UTC().Truncate(time.Minute)
	at := func(from, to time.Duration) inplace.Window {
		return inplace.Window(now.Add(from).Format("15:04") + "-" + now.Add(to).Format("15:04"))
	}
	open := during(at(-time.Hour, time.Hour)).Plan()
	if got := fixture.Brief(open.Steps); got != "out r, out s" {
		t.Errorf("while it is open: %q", got)
	}
	r := during(at(time.Minute, time.Hour))
	plan := r.Plan()
	want := "waiting for the maintenance window, which opens on " + now.Add(time.Minute).Format("Mon 2006-01-02 15:04 MST")
	if !plan.Decision.Held || strings.Contains(fixture.Brief(plan.Steps), "out ") || plan.Phase != steps.PhaseWindow ||
		!strings.HasPrefix(plan.Message, want) || plan.After > time.Minute {
		t.Errorf("while it is closed: held %t, %q, %s %q, next look after %s", plan.Decision.Held, fixture.Brief(plan.Steps), plan.Phase,
			plan.Message, plan.After)
	}
	progressing := apps.DeploymentCondition(written(plan), "Progressing")
	if progressing == nil || progressing.Reason != deployments.ReasonWindow || !strings.HasPrefix(progressing.Message, want) {
		t.Errorf("the status says %+v", progressing)
	}
	for i, pod := range r.PodProgress() {
		if says := strings.HasPrefix(pod.Awaits, "the maintenance window, which opens on "); says != (i > 1) {
			t.Errorf("pod %s waits for %q", pod.Pod.Name, pod.Awaits)
		}
	}
	flawed := during("Sat").Plan()
	if flawed.Phase != steps.PhaseStalled || !strings.Contains(flawed.Message, "waiting for a valid maintenance window") {
		t.Errorf("with a value that is no window: %s %q", flawed.Phase, flawed.Message)
	}
}

// TestAStageIsReachedWhateverTheWindowSays: two of four pods are updated when the window closes. Where the partition keeps the others
// anyway, the update goes on to wait at its partition. Where pods still have to move, it waits for the window.
func TestAStageIsReachedWhateverTheWindowSays(t *testing.T) {
	const atWindow = "waiting for the maintenance window, which opens on "
	for partition, want := range map[string]struct {
		phase          steps.Phase
		reason, begins string
		stage          steps.Stage
	}{
		"2": {steps.PhasePartition, "WaitingAtPartition", "waiting at partition 2: 2 of 4 pods updated",
			steps.Stage{Kept: 2, Pods: 4, Reached: true}},
		"100%": {steps.PhasePartition, "WaitingAtPartition", "waiting at partition 100%: ",
			steps.Stage{Kept: 4, Pods: 4, Reached: true}},
		"1":    {steps.PhaseWindow, "WaitingForWindow", atWindow, steps.Stage{Kept: 1, Pods: 4}},
		"":     {steps.PhaseWindow, "WaitingForWindow", atWindow, steps.Stage{Kept: 0, Pods: 4}},
		"half": {steps.PhaseWindow, "WaitingForWindow", atWindow, steps.Stage{Kept: 4, Pods: 4}},
	} {
		now := twoOfFour(nil, nil, nil, nil).Seen.Now.UTC()
		r := during(inplace.Window(now.Add(time.Hour).Format("15:04") + "-" + now.Add(2*time.Hour).Format("15:04")))
		r.Seen.Settings.Partition.Value = partition
		plan := r.Plan()
		progressing := apps.DeploymentCondition(written(plan), "Progressing")
		if plan.Phase != want.phase || !strings.HasPrefix(plan.Message, want.begins) || progressing == nil || progressing.Reason != want.reason ||
			!strings.HasPrefix(progressing.Message, want.begins) {
			t.Errorf("at partition %q: %s %q, the status says %+v", partition, plan.Phase, plan.Message, progressing)
		}
		if stage := r.Stage(); stage != want.stage {
			t.Errorf("at partition %q: the stage is %+v, want %+v", partition, stage, want.stage)
		}
	}
}

// TestEditsSayWhenTheWindowOpens: what users are told at an edit while the window is closed.
func TestEditsSayWhenTheWindowOpens(t *testing.T) {
	closed, _ := inplace.Window("Sat 02:00-04:00").Keeping(inplace.Partition{}, time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))
	native := inplace.Reasons{{Code: inplace.CodeStrategy, Message: "why"}}
	for want, decided := range map[string]steps.EditDecision{
		"is closed: pods stay at the current revision and wait for the maintenance window, which opens on Sat 2026-11-28 02:00 UTC": {Partition: closed},
		"does not apply: an undo takes back all pods that have moved":                                                               {Partition: closed, Undo: true},
		"does not apply: an edit that cannot be made in place is native for all pods":                                               {Partition: closed, Reasons: native},
	} {
		line := decided.AboutPartition()
		if !strings.HasPrefix(line, "maintenance window "+want) {
			t.Errorf("%q, want %q", line, want)
		}
	}
}
