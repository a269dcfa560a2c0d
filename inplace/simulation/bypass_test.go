package simulation

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// bypassed lets the Deployment controller act once while the API server does not reach the webhooks.
func (s *lockstep) bypassed() {
	s.unreachable = true
	s.deploymentController.deliver(0, 1000)
	s.deploymentController.deliver(1, 1000)
	s.deploymentController.resync()
	s.deploymentController.run()
	s.unreachable = false
}

// goOn lets all processes act for that long. rest would not end here: a version that crashes never stops changing, and a pending wait is
// not over.
func (s *lockstep) goOn(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); s.now = s.now.Add(100 * time.Millisecond) {
		s.round()
	}
}

func quarters(d *apps.Deployment) {
	d.Spec.Strategy.RollingUpdate.MaxSurge, d.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromString("25%")),
		new(intstr.FromString("25%"))
}

// TestNativeWriteBypassesTheHold: one native write that bypasses the webhooks deletes no pod that existed before, and none that is just
// being drained.
func TestNativeWriteBypassesTheHold(t *testing.T) {
	for name, image := range map[string]string{"a version that works": "v2", "one that crashes": "crash"} {
		t.Run(name, func(t *testing.T) {
			s := newLockstep(t, 8, quarters)
			before := sorted(s.pods.objects)
			s.edit("sets the image", fixture.App{Image: image})
			s.until(func() bool { return strings.HasPrefix(strings.Join(s.steps, " "), "A marks B marks out") })
			s.bypassed()
			if newRS := s.rollout().UpdateRevision(); apps.Replicas(newRS) != 2 {
				t.Fatalf("the update revision has %d replicas, so there was no bypass", apps.Replicas(newRS))
			}
			s.goOn(deployments.QuietAfterBypass)
			s.goOn(time.Minute)
			for _, pod := range before {
				if s.pods.objects[pod.Name] == nil {
					t.Errorf("pod %s is gone", pod.Name)
				}
			}
			if made := len(s.pods.objects); made != 8 {
				t.Errorf("%d pods are left, want 8", made)
			}
			if image == "v2" {
				s.intact(before)
			}
		})
	}
}

// TestWebhooksOutOfReachMidUpdate: if the API server no longer reaches the webhooks, Stayput and the Deployment controller both scale.
// Stayput is the one that can be told to stop.
func TestWebhooksOutOfReachMidUpdate(t *testing.T) {
	s := newLockstep(t, 8, quarters)
	s.edit("sets an image that crashes", fixture.App{Image: "crash"})
	s.until(func() bool { return strings.HasPrefix(strings.Join(s.steps, " "), "A marks B marks out") })
	s.unreachable, s.world.rules.fellBack = true, true
	s.steps = nil
	end := s.now.Add(5 * time.Minute)
	s.until(func() bool { return !s.rollout().Decision().Held || s.now.After(end) })
	if decision := s.rollout().Decision(); decision.Reasons[0].Code != inplace.CodeFellBack {
		t.Fatalf("no fallback within %d steps: %+v", len(s.steps), decision)
	}
	scaled := 0
	for _, step := range s.steps {
		if strings.HasPrefix(step, "B") && strings.Contains(step, "→") {
			scaled++
		}
	}
	if scaled > 4 {
		t.Errorf("the update revision was scaled %d times against the Deployment controller", scaled)
	}
	s.edit("mends it", fixture.App{Image: "v3"})
	s.goOn(2 * time.Minute)
	s.rest()
	s.intact(nil)
}

// TestBypassIsForgotten: a second bypass does not end the update if the first was long ago.
func TestBypassIsForgotten(t *testing.T) {
	for name, test := range map[string]struct {
		ago  time.Duration
		held bool
	}{
		"just now":        {time.Second, true},
		"half a minute":   {30 * time.Second, false},
		"an hour earlier": {time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(4, fixture.App{Image: "v2"})
			oldRS, newRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 4), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
			for _, rs := range []*apps.ReplicaSet{oldRS, newRS} {
				rs.Labels[inplace.LabelUpdating] = inplace.FormatTime(fixture.Start.Add(-2 * time.Hour))
				rs.Labels[inplace.LabelRenewed] = fixture.Begun
			}
			oldRS.Labels[inplace.LabelReplicas], newRS.Labels[inplace.LabelReplicas] = "4", "0"
			newRS.Labels[inplace.LabelBypassed] = inplace.FormatTime(fixture.Start.Add(-test.ago))
			plan := r.Plan()
			if plan.Decision.Held != test.held {
				t.Errorf("the plan is %+v", plan)
			}
			if !test.held && plan.Decision.Reasons[0].Code != inplace.CodeBypassed {
				t.Errorf("it ends for %+v", plan.Decision.Reasons)
			}
			if isNews := test.ago > inplace.Remembered; isNews != (plan.Bypassed != "") {
				t.Errorf("a bypass is reported: %q", plan.Bypassed)
			}
		})
	}
}
