package simulation

import (
	"strings"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// TestRenewal: the leader keeps renewing the hold of a waiting update. Without a leader the hold expires.
func TestRenewal(t *testing.T) {
	s := newLockstep(t, 3, nil)
	s.pulls(2)
	s.edit("sets an image that does not exist", fixture.App{Image: "bad"})
	s.rest()
	if s.now.Sub(fixture.Start) > time.Hour {
		t.Fatal("no time must pass in this")
	}
	for range 10 {
		before := s.version
		s.pass(time.Minute)
		if s.version == before {
			t.Fatal("the hold was not renewed within a minute")
		}
		if !s.held() {
			t.Fatal("the update is not held although the leader renews the hold")
		}
	}
	s.stayput.running = false
	s.now = s.now.Add(revisions.HoldDuration)
	s.stayput.lease = s.now.Add(time.Hour) // a leader that lives, and never comes to this update
	if s.held() {
		t.Error("the update is held although no leader renews the hold")
	}
}

// TestManagersKilledWhileQuiet: all managers are killed while the update waits for an image. The Deployment controller stopped retrying
// long ago. It was nudged a minute before, and tries once more when the hold has expired.
func TestManagersKilledWhileQuiet(t *testing.T) {
	s := newLockstep(t, 4, surge("1", "1"))
	s.pulls(2)
	s.edit("sets an image that does not exist", fixture.App{Image: "bad"})
	s.rest()
	for range 40 { // the Deployment controller goes on by its own clock
		s.pass(15 * time.Second)
		s.nativeRound(time.Second)
	}
	if s.rollout().UpdateRevision() == nil || !s.held() || len(s.pods.objects) != 4 {
		t.Fatalf("the update does not wait: %s", s.describe())
	}
	s.stayput.running = false
	s.nativeRound(200 * time.Second)
	if newRS := s.rollout().UpdateRevision(); apps.Replicas(newRS) == 0 {
		t.Errorf("200 s later the Deployment controller has not begun: %s", s.describe())
	}
}

// nativeRound lets time pass for the native controllers alone, without nudges.
func (s *lockstep) nativeRound(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); s.now = s.now.Add(100 * time.Millisecond) {
		for watch := range 3 {
			s.deploymentController.deliver(watch, 1000)
			s.replicaSetController.deliver(watch, 1000)
		}
		s.deploymentController.run()
		for _, rs := range s.rollout().OldestFirst() {
			s.syncReplicaSet(rs.Name)
		}
		if s.stayput.running {
			s.stayput.lease = s.now.Add(leaseDuration)
		}
	}
}

// TestMarksComeFirst: Stayput may turn out not to be allowed to make the update. So it stores the marks before it takes a pod out of
// service.
func TestMarksComeFirst(t *testing.T) {
	r := fixture.New(4, fixture.App{Image: "v2"})
	oldRS, newRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 4), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
	for _, name := range []string{"p", "q", "r", "s"} {
		fixture.PodOf(r, name, oldRS)
	}
	describe := func() string {
		var planned []string
		for _, step := range r.Plan().Steps {
			if _, status := step.(steps.PatchStatus); !status {
				planned = append(planned, step.Describe())
			}
		}
		return strings.Join(planned, ", ")
	}
	if got := describe(); got != "ReplicaSet web-a: marks, ReplicaSet web-b: marks" {
		t.Errorf("it begins with %s", got)
	}
	oldRS.Labels[inplace.LabelUpdating], oldRS.Labels[inplace.LabelCurrent] = fixture.Begun, fixture.Begun
	if got := describe(); got != "ReplicaSet web-b: marks" {
		t.Errorf("with one mark it goes on with %s", got)
	}
	newRS.Labels[inplace.LabelUpdating] = fixture.Begun
	if got := describe(); got != "Pod p: take it out of service, in place: restarts app" {
		t.Errorf("with both marks it goes on with %s", got)
	}
}

// TestEachNudgeIsAnEvent: two managers shut down within one second. The first has nudged the native controller while the webhooks of the
// second still refused its writes. The second must nudge it again, and the same value would cause no event.
func TestEachNudgeIsAnEvent(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v2"})
	fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1))
	newest := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
	f := fixture.NewFleet(t, 1)
	f.Edit(fixture.App{Image: "v2"})
	for _, each := range []struct {
		labels func() map[string]string
		nudge  func() []steps.Step
	}{
		{func() map[string]string { return newest.Labels }, r.Nudge},
		{func() map[string]string { return f.Revisions[0].Labels }, f.Nudge},
	} {
		var values []string
		for range 3 {
			for _, step := range each.nudge() {
				switch s := step.(type) {
				case steps.PatchReplicaSet:
					carry(t, s.ReplicaSet, s.Operations)
				case steps.PatchRevision:
					carry(t, s.Revision, s.Operations)
				}
			}
			values = append(values, each.labels()[inplace.LabelRenewed])
		}
		if values[0] == "" || values[0] == values[1] || values[1] == values[2] {
			t.Errorf("three nudges write %v", values)
		}
	}
}

func carry(t *testing.T, object any, operations []jsonpatch.Operation) {
	t.Helper()
	if err := fixture.Apply(object, operations); err != nil {
		t.Fatal(err)
	}
}

// TestLateMarkIsRenewed: a ReplicaSet joins an old update. The patch that marks it also renews its hold, because a mark as old as the
// update would not hold anything.
func TestLateMarkIsRenewed(t *testing.T) {
	r := fixture.New(2, fixture.App{Image: "v2"})
	oldRS, newRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
	oldRS.Labels[inplace.LabelUpdating], oldRS.Labels[inplace.LabelRenewed] = inplace.FormatTime(fixture.Start.Add(-time.Hour)), fixture.Begun
	for _, step := range r.Plan().Steps {
		if patch, is := step.(steps.PatchReplicaSet); is && patch.ReplicaSet == newRS {
			if err := fixture.Apply(newRS, patch.Operations); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !revisions.HoldLasts(newRS.Labels, fixture.Start.Add(-time.Hour), fixture.Start) {
		t.Errorf("the new mark is too old: %v", newRS.Labels)
	}
}
