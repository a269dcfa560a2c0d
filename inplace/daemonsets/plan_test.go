package daemonsets_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
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
			if got := fixture.Images(f.Seen.Pods[0]); got != "app=v2,mesh=m1" || !conditions.IsTrue(f.Seen.Pods[0], corev1.PodReady) {
				t.Errorf("p1 has %s, and is ready: %t", got, conditions.IsTrue(f.Seen.Pods[0], corev1.PodReady))
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

func TestDaemonBudget(t *testing.T) {
	for _, test := range []struct {
		value   string
		at      int
		changes func(*fixture.Fleet)
	}{
		{"1", 1, nil},
		{"2", 2, nil},
		{"50%", 3, nil}, // of five, rounded up
		{"100%", 5, nil},
		{"2", 1, func(f *fixture.Fleet) { f.Seen.Pods = f.Seen.Pods[1:] }}, // a node without a pod counts
		{"2", 2, func(f *fixture.Fleet) { f.Ail("p1") }},                   // a pod that does not serve counts, and is updated without taking more of the budget
		{"1", 1, func(f *fixture.Fleet) { f.Ail("p5") }},
		{"2", 2, func(f *fixture.Fleet) { f.AddNode("n6").Spec.Taints = fixture.Taint("NoExecute") }}, // a node that runs no pod does not count
		{"1", 0, func(f *fixture.Fleet) { fixture.Unready(f.Seen.Pods[0]); f.Away("n1") }},
		{"2", 1, func(f *fixture.Fleet) { fixture.Unready(f.Seen.Pods[0]); f.Away("n1") }},
	} {
		f := fixture.NewFleet(t, 5, fixture.MaxUnavailable(test.value))
		if test.changes != nil {
			test.changes(f)
		}
		f.Edit(fixture.App{Image: "bad"})
		f.Rest()
		if at := slices.DeleteFunc(slices.Clone(f.Steps),
			func(step string) bool { return !strings.HasSuffix(step, "app=bad") }); len(at) != test.at {
			t.Errorf("maxUnavailable %s: %d pods at a time, want %d: %q", test.value, len(at), test.at, f.Steps)
		}
	}
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

func TestDaemonOnAnUnreachableNodeFollowsLater(t *testing.T) {
	f := fixture.NewFleet(t, 2, fixture.MaxUnavailable("2"))
	f.Away("n2")
	fixture.Unready(f.Seen.Pods[1])
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.Expect("mark 2 true false", "close p1", "p1 is 2 app=v2", "open p1")
	f.Node("n2").Status.Conditions[0].Status = corev1.ConditionTrue
	f.Rest()
	f.UpdatedTo("2", "v2")
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
	f.Seen.Now = f.Seen.Now.Add(revisions.NudgeDaemonSetEvery)
	f.Once()
	f.Expect("mark 3 false true")
	f.Seen.Pods = f.Seen.Pods[:1]
	f.Once()
	f.Expect("mark 3 false false")
}

// TestDaemonOfARevisionThatIsGoneMakesCapacity: a pod that is partially patched to a revision that is gone must be replaced. It is Ready
// and not available, so it takes the budget of the pods for which its deletion would wait. If its deletion were held, nothing would ever
// happen.
func TestDaemonOfARevisionThatIsGoneMakesCapacity(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v2"})
	f.Once()
	f.Seen.Pods[0].Labels[inplace.LabelRevisionHash] = podstate.HashPartial
	f.Seen.Pods[0].Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "gone", Generation: 1,
		Containers: map[string]readiness.MovedContainer{"app": {Image: "v3",
			ContainerID: f.Seen.Pods[0].Status.ContainerStatuses[0].ContainerID}}}.String()}
	if held, why := f.HoldsDeletion(f.Seen.Pods[0]); held || why.Code != inplace.CodeRevisionGone {
		t.Errorf("deletion held: %t, %+v", held, why)
	}
	if held, _ := f.HoldsDeletion(f.Seen.Pods[1]); !held {
		t.Error("the deletion of the other pod is not held")
	}
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
	f.Expect("mark 2 true false", "mark 2 false true")
}

func TestDaemonsNative(t *testing.T) {
	one := intstr.FromInt32(1)
	for name, test := range map[string]struct {
		change func(*fixture.Fleet)
		code   string
	}{
		"env": {func(f *fixture.Fleet) { f.Edit(fixture.App{Image: "v1", Env: "a"}) }, inplace.CodeTemplateField},
		"OnDelete": {func(f *fixture.Fleet) { f.DaemonSet.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType },
			inplace.CodeStrategy},
		"maxSurge": {func(f *fixture.Fleet) {
			f.DaemonSet.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxSurge: &one}
		}, inplace.CodeStrategy},
		"opted out": {func(f *fixture.Fleet) { f.Seen.Mode = inplace.ModeRecreate }, inplace.CodeMode},
		"deleting":  {func(f *fixture.Fleet) { f.DaemonSet.DeletionTimestamp = &metav1.Time{Time: fixture.Start} }, inplace.CodeDeleting},
		"too large": {func(f *fixture.Fleet) { f.Seen.Unread = "too large" }, inplace.CodeTooLarge},
		"fallen back": {func(f *fixture.Fleet) {
			f.UpdateRevision().Labels[inplace.LabelFallback] = times.Seconds(fixture.Start)
		},
			inplace.CodeFellBack},
		"the old revision is gone": {func(f *fixture.Fleet) { f.Revisions = f.Revisions[1:] }, inplace.CodeRevisionGone},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 2)
			f.Edit(fixture.App{Image: "v2"})
			test.change(f)
			decision := f.Decision()
			if decision.Held || len(decision.Reasons) == 0 || decision.Reasons[0].Code != test.code {
				t.Errorf("decision is %+v, want it native for %s", decision, test.code)
			}
			if held, why := f.HoldsDeletion(f.Seen.Pods[0]); held != (test.code == inplace.CodeDeleting) || why.Code != test.code {
				t.Errorf("deletion held: %t, %+v, want it allowed for %s", held, why, test.code)
			}
			if plan := f.Plan(); len(plan.Steps) > 0 || plan.Phase != steps.PhaseNative {
				t.Errorf("%s with steps %v", plan.Phase, plan.Steps)
			}
		})
	}
}

// TestDaemonsAreNudgedAfterAGate: a deletion is held for as long as the gate of another pod may still make that pod unavailable. When that
// time is over, no event need occur, so the native controller is nudged.
func TestDaemonsAreNudgedAfterAGate(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v1", Env: "a"})
	gate := conditions.Condition(f.Seen.Pods[1], inplace.ConditionServing)
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

func TestHoldsDeletion(t *testing.T) {
	const housekept = inplace.CodeHousekeeping
	for name, test := range map[string]struct {
		change func(*fixture.Fleet, *corev1.Pod)
		code   string // empty: held
	}{
		"untouched":          {func(*fixture.Fleet, *corev1.Pod) {}, ""},
		"moved a moment ago": {func(_ *fixture.Fleet, pod *corev1.Pod) { pod.Labels[inplace.LabelRevisionHash] = "2" }, ""},
		"restarts without gate": {func(_ *fixture.Fleet, pod *corev1.Pod) {
			pod.Labels[inplace.LabelRevisionHash] = podstate.HashPartial
			pod.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "2"}.String()}
		}, ""},
		"undone before the stale deletion": {func(f *fixture.Fleet, _ *corev1.Pod) { f.Edit(fixture.App{Image: "v1"}) }, ""},
		"no revision yet":                  {func(f *fixture.Fleet, _ *corev1.Pod) { f.Revisions = f.Revisions[:1] }, ""},
		"node not ready":                   {func(f *fixture.Fleet, _ *corev1.Pod) { f.Away("n1") }, ""},
		"cordoned": {func(f *fixture.Fleet, _ *corev1.Pod) {
			f.Node("n1").Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
		}, ""},
		"tainted NoSchedule, where it may stay": {func(f *fixture.Fleet,
			_ *corev1.Pod) {
			f.Node("n1").Spec.Taints = fixture.Taint("NoSchedule")
		}, ""},
		"tainted NoExecute": {func(f *fixture.Fleet,
			_ *corev1.Pod) {
			f.Node("n1").Spec.Taints = fixture.Taint("NoExecute")
		}, housekept},
		"node gone":         {func(f *fixture.Fleet, _ *corev1.Pod) { f.Seen.Nodes = f.Seen.Nodes[1:] }, housekept},
		"no node left":      {func(f *fixture.Fleet, _ *corev1.Pod) { f.Seen.Nodes = []*corev1.Node{} }, housekept},
		"node not selected": {func(f *fixture.Fleet, _ *corev1.Pod) { f.Place(`"nodeSelector":{"disk":"ssd"}`) }, housekept},
		"node selected": {func(f *fixture.Fleet, _ *corev1.Pod) {
			f.Place(`"nodeSelector":{"disk":"ssd"}`)
			f.Node("n1").Labels = map[string]string{"disk": "ssd"}
		}, ""},
		"node not affine": {func(f *fixture.Fleet, _ *corev1.Pod) {
			f.Place(`"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
				{"matchExpressions":[{"key":"disk","operator":"In","values":["ssd"]}]}]}}}`)
		}, housekept},
		"failed":         {func(_ *fixture.Fleet, pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, housekept},
		"succeeded":      {func(_ *fixture.Fleet, pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }, housekept},
		"not scheduled":  {func(_ *fixture.Fleet, pod *corev1.Pod) { pod.Spec.NodeName = "" }, housekept},
		"one of several": {func(f *fixture.Fleet, _ *corev1.Pod) { f.AddPod("p9", "n1") }, housekept},
		"one is going": {func(f *fixture.Fleet, _ *corev1.Pod) {
			f.AddPod("p9", "n1").DeletionTimestamp = &metav1.Time{Time: fixture.Start}
		}, ""},
		"not in place": {func(f *fixture.Fleet, _ *corev1.Pod) { f.Edit(fixture.App{Image: "v1", Env: "a"}) }, inplace.CodeTemplateField},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 2)
			f.Edit(fixture.App{Image: "v2"})
			test.change(f, f.Seen.Pods[0])
			held, why := f.HoldsDeletion(f.Seen.Pods[0])
			if held != (test.code == "") || why.Code != test.code {
				t.Errorf("held is %t, %+v; want %q", held, why, test.code)
			}
		})
	}
}

// TestDaemonsOfADaemonSetBeingDeletedStay: the native controller does nothing to a DaemonSet that is being deleted, once it knows of the
// deletion. The leader no longer renews the hold.
func TestDaemonsOfADaemonSetBeingDeletedStay(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fixture.Fleet)
		held   bool
		code   string
	}{
		"updated in place": {func(*fixture.Fleet) {}, true, inplace.CodeDeleting},
		"long ago":         {func(f *fixture.Fleet) { f.HeldSince = f.Seen.Now.Add(-time.Hour) }, true, inplace.CodeDeleting},
		"one of the update revision": {func(f *fixture.Fleet) { f.Seen.Pods[0].Labels[inplace.LabelRevisionHash] = "2" }, true,
			inplace.CodeDeleting},
		"its node is gone": {func(f *fixture.Fleet) { f.Seen.Nodes = f.Seen.Nodes[1:] }, false, inplace.CodeHousekeeping},
		"not managed":      {func(f *fixture.Fleet) { f.Seen.Mode = inplace.ModeNone }, false, inplace.CodeMode},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 2)
			f.Edit(fixture.App{Image: "v2"})
			f.DaemonSet.DeletionTimestamp = &metav1.Time{Time: fixture.Start}
			test.change(f)
			if held, why := f.HoldsDeletion(f.Seen.Pods[0]); held != test.held || why.Code != test.code {
				t.Errorf("held is %t, %+v; want %t, %s", held, why, test.held, test.code)
			}
		})
	}
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
			f.UpdateRevision().Labels[inplace.LabelUpdating] = times.Seconds(f.Seen.Now.Add(-10 * time.Minute))
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
			f.UpdateRevision().Labels[inplace.LabelUpdating] = times.Seconds(f.Seen.Now.Add(-time.Hour))
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
