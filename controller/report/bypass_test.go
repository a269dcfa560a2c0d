package report

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

var (
	atRest   = steps.Plan{Phase: steps.PhaseIdle}
	updating = native(inplace.CodeNativeRollout)
)

// native returns a plan that leaves the update to the native controller.
func native(code string) steps.Plan {
	reasons := inplace.Reasons{{Code: code, Message: "begun with new pods"}}
	return steps.Plan{Phase: steps.PhaseNative, Decision: steps.Decision{Reasons: reasons}}
}

func (s *story) bypasses() float64 {
	return testutil.ToFloat64(s.metrics.bypassed.WithLabelValues(shop, observe.Deployments.Workload.Name))
}

// sees reports the plans one by one, each later than the one before.
func (s *story) sees(every time.Duration, plans ...steps.Plan) {
	for _, plan := range plans {
		s.report(plan)
		s.Read.Seen.Now = s.Read.Seen.Now.Add(every)
	}
}

func TestReportOfARolloutPastTheWebhooks(t *testing.T) {
	for name, c := range map[string]struct {
		plans []steps.Plan
		every time.Duration
		want  float64
	}{
		"seen without a rollout before":    {[]steps.Plan{atRest, updating}, time.Hour, 1},
		"held at first":                    {[]steps.Plan{atRest, held, held, updating}, time.Second, 1},
		"recorded once":                    {[]steps.Plan{atRest, updating, updating}, time.Second, 1},
		"again with the next update":       {[]steps.Plan{atRest, updating, atRest, updating}, time.Second, 2},
		"the hold has expired":             {[]steps.Plan{atRest, held, updating}, time.Hour, 0},
		"never seen before":                {[]steps.Plan{updating}, time.Second, 0},
		"held when first seen":             {[]steps.Plan{held, updating}, time.Second, 0},
		"native for another reason before": {[]steps.Plan{atRest, native(inplace.CodeStrategy), updating}, time.Second, 0},
		"an edit that needs new pods":      {[]steps.Plan{atRest, native(inplace.CodeTemplateField)}, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.sees(c.every, c.plans...)
			if n := s.bypasses(); n != c.want {
				t.Errorf("%v bypasses are counted, want %v; events %q", n, c.want, fixture.Told(s.Recorder))
			}
		})
	}
}

// TestReportOfARolloutOlderThanTheLabel has a namespace that got its label during a native rollout.
func TestReportOfARolloutOlderThanTheLabel(t *testing.T) {
	s := newStory(t)
	s.Read.Seen.Mode = inplace.ModeNone
	s.sees(time.Second, native(inplace.CodeMode), atRest)
	s.Read.Seen.Mode = inplace.ModeInPlace
	s.sees(time.Second, updating)
	if n := s.bypasses(); n != 0 {
		t.Errorf("%v bypasses are counted, want none", n)
	}
}

func TestReportOfABypass(t *testing.T) {
	bypassed := held
	bypassed.Bypassed = "another client has scaled"
	s := newStory(t)
	s.begin()
	s.report(bypassed)
	fixture.WantTold(t, s.Recorder, "Warning "+EventBypassed+
		" A write of the Deployment controller was not held, so the API server may not reach "+"Stayput's webhooks: another client has scaled")
	s.report(bypassed)
	fixture.WantTold(t, s.Recorder)
	if n := s.bypasses(); n != 1 {
		t.Errorf("%v bypasses are counted, want 1", n)
	}
}

// TestReportOfWhoHasScaled: the answer to the write that notes a bypass names the client.
func TestReportOfWhoHasScaled(t *testing.T) {
	fields := metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)
	owner := func(manager, subresource string, of *metav1.FieldsV1) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: of}
	}
	for name, test := range map[string]struct {
		noted   string
		managed metav1.ManagedFieldsEntry
		says    string
	}{
		"a client":                 {"1", owner("kubectl", "scale", fields), "another client has scaled: kubectl has scaled web-old"},
		"Stayput":                  {"1", owner("stayput", "", fields), "another client has scaled"},
		"of its status":            {"1", owner("kube-controller-manager", "status", fields), "another client has scaled"},
		"of other fields":          {"1", owner("helm", "", metav1.NewFieldsV1(`{}`)), "another client has scaled"},
		"not known":                {"1", owner("helm", "", nil), "another client has scaled"},
		"of another ReplicaSet":    {"2", owner("kubectl", "scale", fields), "another client has scaled"},
		"of one without that mark": {"", owner("kubectl", "scale", fields), "another client has scaled"},
	} {
		t.Run(name, func(t *testing.T) {
			bypassed := held
			bypassed.Bypassed = "another client has scaled"
			s := newStory(t)
			s.begin()
			before := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web-old", Labels: map[string]string{}}}
			before.Spec.Replicas = new(int32(2))
			if test.noted != "" {
				before.Labels[inplace.LabelReplicas] = test.noted
			}
			after := before.DeepCopy()
			after.ManagedFields = []metav1.ManagedFieldsEntry{test.managed}
			s.report(bypassed, write.Done{Before: before, After: after})
			fixture.WantTold(t, s.Recorder, "Warning "+EventBypassed+
				" A write of the Deployment controller was not held, so the API server may not reach Stayput's webhooks: "+test.says)
		})
	}
}

// TestBypassBeforeALeaderIsNotTold checks that a bypass from before this leader is not recorded. The cause may be that
// no manager ran, and not that the webhooks are unreachable.
func TestBypassBeforeALeaderIsNotTold(t *testing.T) {
	s := newStory(t)
	s.apply(s.marks(inplace.LabelUpdating, "web-old", "web-new"))
	bypassed := held
	bypassed.Bypassed = "another client has scaled"
	s.sees(time.Second, bypassed, bypassed)
	fixture.WantTold(t, s.Recorder)
	if n := s.bypasses(); n != 0 {
		t.Errorf("%v bypasses are counted, want none", n)
	}
}
