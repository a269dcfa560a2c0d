package controllerrevisions_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

func TestDaemonStepsOfASidecar(t *testing.T) {
	for name, gated := range map[string]bool{"gated": true, "without gates": false} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 1)
			f.Edit(fixture.App{Image: "v1", Mesh: "m1"})
			r := fixture.New(1, fixture.App{})
			f.Seen.Pods[0].Spec = fixture.PodOf(r, "made", fixture.ReplicaSetOf(r, "x", fixture.App{Image: "v1", Mesh: "m1"}, 1)).Spec
			f.Seen.Pods[0].Spec.NodeName, f.Seen.Pods[0].Status.InitContainerStatuses = "n1", r.Seen.Pods[0].Status.InitContainerStatuses
			f.Seen.Pods[0].Labels[inplace.LabelRevisionHash] = "2"
			if !gated {
				fixture.Ungated(f.Seen.Pods[0])
			}
			f.Edit(fixture.App{Image: "v1", Mesh: "m2"})
			f.Rest()
			if gated {
				f.Expect("mark 3 true false", "close p1", "p1 is 3 app=v1,mesh=m2", "open p1", "mark 3 false false")
			} else {
				f.Expect("mark 3 true false", "p1 is updating-in-place app=v1,mesh=m2", "p1 is 3 app=v1,mesh=m2", "mark 3 false false")
			}
			f.Edit(fixture.App{Image: "v2", Mesh: "m1"})
			f.Rest()
			if got := fixture.Images(f.Seen.Pods[0]); got != "app=v2,mesh=m1" || !apps.IsTrue(f.Seen.Pods[0], corev1.PodReady) {
				t.Errorf("p1 has %s, and is ready: %t", got, apps.IsTrue(f.Seen.Pods[0], corev1.PodReady))
			}
		})
	}
}

func TestDaemonStepsOfAnImage(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.Expect("mark 2 true false", "close p1", "p1 is 2 app=v2", "open p1", "close p2", "p2 is 2 app=v2", "open p2", "mark 2 false false")
	f.UpdatedTo("2", "v2")
	f.Edit(fixture.App{Image: "v1"})
	f.Rest()
	f.UpdatedTo("1", "v1")
}

func TestDaemonStepsOfALabel(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v1", Chart: "c2"})
	f.Rest()
	f.Expect("mark 2 true false", "p1 is 2 app=v1", "p2 is 2 app=v1", "mark 2 false false")
	if f.Seen.Pods[0].Labels["chart"] != "c2" {
		t.Errorf("labels are %v", f.Seen.Pods[0].Labels)
	}
}

func TestDaemonStepsWithoutGate(t *testing.T) {
	f := fixture.NewFleet(t, 1, func(f *fixture.Fleet) { fixture.Ungated(f.Seen.Pods[0]) })
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.Expect("mark 2 true false", "p1 is updating-in-place app=v2", "p1 is 2 app=v2", "mark 2 false false")
	f.UpdatedTo("2", "v2")
}

func TestDaemonUndoMidUpdateWithoutGate(t *testing.T) {
	f := fixture.NewFleet(t, 2, func(f *fixture.Fleet) { fixture.Ungated(f.Seen.Pods[0]); fixture.Ungated(f.Seen.Pods[1]) })
	f.Edit(fixture.App{Image: "bad"})
	f.Rest()
	f.Expect("mark 2 true false", "p1 is updating-in-place app=bad")
	f.Edit(fixture.App{Image: "v1"})
	f.Rest()
	f.Expect("mark 1 true false", "mark 2 false false", "p1 is updating-in-place app=v1", "p1 is 1 app=v1", "mark 1 false false")
}

func TestDaemonUndoOfABadImage(t *testing.T) {
	f := fixture.NewFleet(t, 3, fixture.MaxUnavailable("2"))
	f.Edit(fixture.App{Image: "bad"})
	f.Rest()
	f.Steps = nil
	f.Edit(fixture.App{Image: "v1"})
	f.Rest()
	f.UpdatedAll("1", "app=v1")
	for _, step := range f.Steps {
		if strings.Contains(step, "p3") {
			t.Errorf("p3 was never updated, and needs no undo: %q", f.Steps)
		}
	}
}

func TestDaemonsOfSeveralRevisions(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v1", Env: "a"})
	f.Seen.Pods[1].Labels[inplace.LabelRevisionHash] = "2" // natively replaced
	f.Edit(fixture.App{Image: "v2"})
	held := func(pod int, want bool) {
		t.Helper()
		if got, why := f.HoldsDeletion(f.Seen.Pods[pod]); got != want {
			t.Errorf("deletion of %s held: %t (%s)", f.Seen.Pods[pod].Name, got, why.Message)
		}
	}
	held(0, true)
	held(1, true)
	f.Once()
	f.Once()
	held(1, true)
	f.Rest()
	f.Expect("mark 3 true false", "close p1", "p1 is 3 app=v2", "open p1", "mark 3 false true")
	held(0, true) // the native controller may have decided to delete it before it moved
	held(1, false)
	f.Seen.Now = f.Seen.Now.Add(revisions.NudgeUnretriedEvery)
	f.Once()
	f.Expect("mark 3 false true")
	f.Seen.Pods = f.Seen.Pods[:1]
	f.Once()
	f.Expect("mark 3 false false")
}

func TestDaemonFallBack(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v2"})
	f.Once()
	f.Once()
	for _, step := range f.FallBack(inplace.Reason{Code: inplace.CodeRefused, Message: "policy"}).Steps {
		f.CarryOut(step)
	}
	f.Expect("mark 2 true false", "close p1", "open p1", "mark 2 false true")
	if decision := f.Decision(); decision.Held || decision.Reasons[0].Code != inplace.CodeFellBack {
		t.Errorf("decision is %+v after a fallback", decision)
	}
	if held, _ := f.HoldsDeletion(f.Seen.Pods[0]); held {
		t.Error("a deletion is held after a fallback")
	}
}

func TestDaemonsLeftWhenTheLabelIsTakenOff(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v2"})
	f.Once()
	f.Seen.Mode = inplace.ModeNone
	f.Once()
	f.Expect("mark 2 true false", "mark 2 false false") // the removal of a mark nudges
}

// TestDaemonsAreNudgedAfterAGate: a deletion is held for as long as the gate of another pod may still make that pod unavailable. When that
// time is over, no event need occur, so the native controller is nudged.
func TestDaemonsAreNudgedAfterAGate(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v1", Env: "a"})
	gate := apps.Condition(f.Seen.Pods[1], inplace.ConditionServing)
	gate.Reason, gate.LastTransitionTime = readiness.ReasonReopened, metav1.NewTime(f.Seen.Now.Add(-time.Second))
	if held, _ := f.HoldsDeletion(f.Seen.Pods[0]); !held {
		t.Fatal("the deletion is not held")
	}
	if plan := f.Plan(); len(plan.Steps) > 0 || plan.After != readiness.GateSeenAfter-time.Second {
		t.Errorf("looks again after %s, with steps %v", plan.After, plan.Steps)
	}
	f.Seen.Now = f.Seen.Now.Add(readiness.GateSeenAfter)
	if held, why := f.HoldsDeletion(f.Seen.Pods[0]); held {
		t.Errorf("the deletion is still held: %s", why.Message)
	}
	if f.Once(); f.UpdateRevision().Labels[inplace.LabelRenewed] == "" {
		t.Error("the native controller is not nudged")
	}
	if plan := f.Plan(); len(plan.Steps) > 0 {
		t.Errorf("it is nudged again: %v", plan.Steps)
	}
}

func TestDaemonRewrittenImageFallsBack(t *testing.T) {
	f := fixture.NewFleet(t, 1, func(f *fixture.Fleet) { f.Seen.Pods[0].Spec.Containers[0].Image = "mirror/v1" })
	f.Edit(fixture.App{Image: "v2"})
	f.Seen.DryRun = dryrun.Result{UpdateRevision: "2", Unknown: "it is not known"}
	f.Once()
	f.Expect("mark 2 false true")
}

func TestRevisionTemplate(t *testing.T) {
	for data, want := range map[string]string{
		`{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null}}}}`: "",
		`{"spec":{"volumeClaimTemplates":[]}}`:                                             "no pod template",
		`{"spec":7}`:                                                                       "cannot unmarshal",
		``:                                                                                 "unexpected end",
	} {
		template, err := (&apps.ControllerRevision{Data: json.RawMessage(data)}).Template()
		switch {
		case want == "" && (err != nil || !apps.SameTemplate(template, apps.Template{})):
			t.Errorf("%s is %s, %v", data, fixture.RawOf(template), err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v, want one about %q", data, err, want)
		}
	}
}

// TestCreationPastTheWebhooks: a pod that is created in the middle of an update gets its gate from a webhook. A pod without one shows that
// the API server did not call the webhook.
func TestCreationPastTheWebhooks(t *testing.T) {
	for name, c := range map[string]struct {
		ungated bool
		age     time.Duration
		want    bool
	}{
		"created before the update":   {true, time.Hour, false},
		"in its middle, without gate": {true, time.Minute, true},
		"in its middle, with gate":    {false, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 3)
			f.Edit(fixture.App{Image: "v2"})
			f.UpdateRevision().Labels[inplace.LabelUpdating] = inplace.FormatTime(f.Seen.Now.Add(-10 * time.Minute))
			other := f.Seen.Pods[2]
			other.CreationTimestamp = metav1.NewTime(f.Seen.Now.Add(-c.age))
			if c.ungated {
				other.Spec.ReadinessGates = nil
			}
			if plan := f.Plan(); (plan.Bypassed != "") != c.want {
				t.Errorf("a bypass is reported: %q, phase %s", plan.Bypassed, plan.Phase)
			}
		})
	}
}

// TestCreationsPastTheWebhooksGoOn: if such creations go on, the DaemonSet controller takes pods down at the same time as Stayput. Stayput
// is the one that can be told to stop.
func TestCreationsPastTheWebhooksGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		ages                []time.Duration
		closes, held, waits bool
	}{
		"none":                             {nil, true, true, false},
		"one, just now":                    {[]time.Duration{2 * time.Second}, false, true, true},
		"one, and quiet since":             {[]time.Duration{podstate.QuietAfterBypass + time.Second}, true, true, false},
		"two at once":                      {[]time.Duration{time.Second, 4 * time.Second}, false, true, true},
		"two at once, and quiet since":     {[]time.Duration{time.Minute, time.Minute + time.Second}, true, true, false},
		"they go on":                       {[]time.Duration{time.Second, time.Second + 2*podstate.QuietAfterBypass}, false, false, false},
		"they went on":                     {[]time.Duration{time.Minute, 2 * time.Minute}, false, false, false},
		"the one before is long forgotten": {[]time.Duration{time.Minute, 2 * podstate.BypassMemory}, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 4)
			f.Edit(fixture.App{Image: "v2"})
			f.UpdateRevision().Labels[inplace.LabelUpdating] = inplace.FormatTime(f.Seen.Now.Add(-time.Hour))
			for i, age := range c.ages {
				created := f.Seen.Pods[len(f.Seen.Pods)-1-i]
				created.CreationTimestamp, created.Spec.ReadinessGates = metav1.NewTime(f.Seen.Now.Add(-age)), nil
			}
			plan := f.Plan()
			if closes := slices.ContainsFunc(plan.Steps, steps.Closes); closes != c.closes || plan.Decision.Held != c.held ||
				(plan.Phase == steps.PhaseWaiting) != c.waits {
				t.Errorf("a gate closes: %v, held %v %s, phase %s: %s", closes, plan.Decision.Held, plan.Decision.Reasons, plan.Phase, plan.Message)
			}
			if !c.held && plan.Decision.Reasons[0].Code != inplace.CodeBypassed {
				t.Errorf("it ends with %v for %s", plan.Steps, plan.Decision.Reasons)
			}
		})
	}
}

func TestDaemonStepsOfResources(t *testing.T) {
	f := fixture.NewSizedFleet(t, 2)
	f.Edit(fixture.App{Image: "v1", CPU: "200m"})
	f.Rest()
	f.Expect("mark 2 true false", "p1 is updating-in-place app=v1", "p1 gets 200m", "p1 is 2 app=v1",
		"p2 is updating-in-place app=v1", "p2 gets 200m", "p2 is 2 app=v1", "mark 2 false false")
	f.UpdatedTo("2", "v1")
}

func TestDaemonUndoOfResourcesMidUpdate(t *testing.T) {
	f := fixture.NewSizedFleet(t, 2)
	f.Edit(fixture.App{Image: "v1", CPU: "200m"})
	for range 3 {
		f.Once()
	}
	f.Expect("mark 2 true false", "p1 is updating-in-place app=v1", "p1 gets 200m")
	f.Edit(fixture.App{Image: "v1", CPU: "100m"})
	f.Rest()
	f.Expect("mark 1 true false", "mark 2 false false", "p1 is updating-in-place app=v1", "p1 gets 100m", "p1 is 1 app=v1",
		"mark 1 false false")
}

func TestDaemonStepsOfResourcesAndAnImage(t *testing.T) {
	f := fixture.NewSizedFleet(t, 1)
	f.Edit(fixture.App{Image: "v2", CPU: "200m"})
	f.Rest()
	f.Expect("mark 2 true false", "p1 is updating-in-place app=v1", "p1 gets 200m", "close p1", "p1 is 2 app=v2", "open p1",
		"mark 2 false false")
	f.UpdatedTo("2", "v2")
}

// TestDaemonFurtherEditOfAnImage: a pod is partially patched to a revision, and the next revision has the same resources. The pod still has
// to get them.
func TestDaemonFurtherEditOfAnImage(t *testing.T) {
	f := fixture.NewSizedFleet(t, 1)
	f.Edit(fixture.App{Image: "v1", CPU: "200m"})
	for range 2 {
		f.Once()
	}
	f.Expect("mark 2 true false", "p1 is updating-in-place app=v1")
	f.Edit(fixture.App{Image: "v2", CPU: "200m"})
	f.Rest()
	f.UpdatedTo("3", "v2")
	if cpu := f.Seen.Pods[0].Spec.Containers[0].Resources.Requests.Cpu().String(); cpu != "200m" {
		t.Errorf("it has %s", cpu)
	}
}

// TestDaemonResourcesThatRestart: if resizePolicy asks for a restart with other CPU, the pod is resized like a pod that gets another image.
// An undo takes the same way.
func TestDaemonResourcesThatRestart(t *testing.T) {
	there := []string{"mark 2 true false", "close p1", "p1 is updating-in-place app=v1", "p1 gets 200m", "open p1", "p1 is 2 app=v1",
		"mark 2 false false"}
	back := []string{"close p1", "p1 is updating-in-place app=v1", "p1 gets 100m", "open p1", "p1 is 1 app=v1", "mark 1 false false"}
	for steps, then := range map[int][]string{
		1: {"mark 2 false false"},
		2: {"open p1", "mark 2 false false"},
		3: {"mark 1 true false", "mark 2 false false", "p1 is 1 app=v1", "open p1", "mark 1 false false"},
		4: slices.Concat([]string{"open p1", "mark 1 true false", "mark 2 false false"}, back),
		5: slices.Concat([]string{"p1 is 2 app=v1", "mark 1 true false", "mark 2 false false"}, back),
		7: slices.Concat([]string{"mark 1 true false"}, back),
	} {
		f := fixture.NewFleetOf(t, 1, fixture.App{Image: "v1", CPU: "100m", Renews: true})
		f.Edit(fixture.App{Image: "v1", CPU: "200m", Renews: true})
		for range steps {
			f.Once()
		}
		f.Edit(fixture.App{Image: "v1", CPU: "100m", Renews: true})
		f.Rest()
		f.Expect(append(slices.Clone(there[:min(steps, len(there))]), then...)...)
		f.UpdatedAll("1", "app=v1")
	}
}

func TestDaemonInfeasibleResources(t *testing.T) {
	f := fixture.NewSizedFleet(t, 2)
	f.Edit(fixture.App{Image: "v1", CPU: "9"})
	f.Rest()
	f.Expect("mark 2 true false", "p1 is updating-in-place app=v1", "p1 gets 9", "p2 is updating-in-place app=v1", "p2 gets 9",
		"mark 2 false true")
}

// TestDaemonStepsOfResourcesAndARestart: a pod that has been resized still has to be restarted.
func TestDaemonStepsOfResourcesAndARestart(t *testing.T) {
	f := fixture.NewSizedFleet(t, 1)
	f.Says = true
	f.Edit(fixture.App{Image: "v1", CPU: "200m", Restarted: "1"})
	for range 30 {
		f.Once()
	}
	f.Expect("mark 2 true false", "p1 is updating-in-place app=v1", "p1 gets 200m", "renew p1", "close p1", "p1 is 2 app="+fixture.Another,
		"mark 2 false false")
	f.UpdatedTo("2", fixture.Another)
}
