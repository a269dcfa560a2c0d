package daemonsets_test

import (
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
	"github.com/stayput/stayput/inplace/daemonsets"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

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
		{"2", 1, leaving("n6", corev1.PodRunning)},                                                    // a terminating pod counts, wherever it is
		{"2", 2, leaving("n6", corev1.PodFailed)},                                                     // until it has ended
		{"2", 2, leaving("", corev1.PodPending)},
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

// leaving adds a node that runs no pod any more, and a pod that is being deleted from that node.
func leaving(node string, phase corev1.PodPhase) func(*fixture.Fleet) {
	return func(f *fixture.Fleet) {
		f.AddNode("n6").Spec.Taints = fixture.Taint("NoExecute")
		pod := f.AddPod("p6", node)
		pod.DeletionTimestamp, pod.Status.Phase = &metav1.Time{Time: fixture.Start}, phase
	}
}

func TestDaemonOnAnUnreachableNodeFollowsLater(t *testing.T) {
	f := fixture.NewFleet(t, 2, fixture.MaxUnavailable("2"))
	f.Away("n2")
	fixture.Unready(f.Seen.Pods[1])
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.Expect("mark 2 true false", "out p1", "p1 is 2 app=v2")
	f.Node("n2").Status.Conditions[0].Status = corev1.ConditionTrue
	f.Rest()
	f.UpdatedTo("2", "v2")
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
		"opted out": {func(f *fixture.Fleet) { f.Seen.Mode = inplace.ModeNative }, inplace.CodeMode},
		"deleting":  {func(f *fixture.Fleet) { f.DaemonSet.DeletionTimestamp = &metav1.Time{Time: fixture.Start} }, inplace.CodeDeleting},
		"a group":   {func(f *fixture.Fleet) { f.Edit(fixture.App{Image: "v3", Group: "llm"}) }, inplace.CodeGroups},
		"too large": {func(f *fixture.Fleet) { f.Seen.Unread = "too large" }, inplace.CodeTooLarge},
		"fallen back": {func(f *fixture.Fleet) {
			f.Seen.Fallback.Hash = f.TemplateHash()
			f.UpdateRevision().Labels[inplace.LabelRenewed] = inplace.FormatTime(fixture.Start) // nudged just now
		}, inplace.CodeFellBack},
		"the old revision is gone": {func(f *fixture.Fleet) { f.Revisions = f.Revisions[1:] }, inplace.CodeRevisionGone},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 2)
			f.Edit(fixture.App{Image: "v2"})
			test.change(f)
			decision := f.Decision()
			// Both pods cannot be updated in place, for the same reason. A user who reads it once for each pod would miss other reasons.
			if decision.Held || len(decision.Reasons) != 1 || decision.Reasons[0].Code != test.code {
				t.Errorf("decision is %+v, want it native for %s, told once", decision, test.code)
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

func TestHoldsDeletion(t *testing.T) {
	const housekept = inplace.CodeHousekeeping
	for name, test := range map[string]struct {
		change func(*fixture.Fleet, *corev1.Pod)
		code   string // empty: held
	}{
		"untouched":          {func(*fixture.Fleet, *corev1.Pod) {}, ""},
		"moved a moment ago": {func(_ *fixture.Fleet, pod *corev1.Pod) { pod.Labels[inplace.LabelRevisionHash] = "2" }, ""},
		"restarts while it serves": {func(_ *fixture.Fleet, pod *corev1.Pod) {
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
		"no node is known":  {func(f *fixture.Fleet, _ *corev1.Pod) { f.Seen.Nodes = nil }, ""},
		"names its node":    {func(f *fixture.Fleet, _ *corev1.Pod) { f.Place(`"nodeName":"n1"`) }, ""},
		"names another one": {func(f *fixture.Fleet, _ *corev1.Pod) { f.Place(`"nodeName":"n2"`) }, housekept},
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

// TestEditSoonAfterAnUpdate: pods that are Ready serve, though not yet for minReadySeconds. They go before those that are available, and
// after those that are not Ready. Not more of them at a time than may be unavailable stop serving.
func TestEditSoonAfterAnUpdate(t *testing.T) {
	for name, test := range map[string]struct {
		atATime string
		soon    []int // pods that have just become Ready
		sick    string
		want    []string // which pods have their turn at once
	}{
		"all":                        {"1", []int{0, 1, 2}, "", []string{"p1"}},
		"all, two at a time":         {"2", []int{0, 1, 2}, "", []string{"p1", "p2"}},
		"all that are Ready":         {"1", []int{0, 1}, "p3", []string{"p3"}},
		"all but one that may go":    {"2", []int{0, 1}, "p3", []string{"p3", "p1"}},
		"the last one of the update": {"1", []int{2}, "", []string{"p3"}},
		"one, and one may go":        {"2", []int{2}, "", []string{"p3", "p1"}},
	} {
		edit := func(f *fixture.Fleet) { f.Edit(fixture.App{Image: "bad"}) }
		ask := func(f *fixture.Fleet) {
			for _, pod := range f.Seen.Pods {
				metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartContainers, "app")
			}
		}
		for what, begin := range map[string]func(*fixture.Fleet){"update": edit, "request": ask} {
			t.Run(name+", "+what, func(t *testing.T) {
				f := fixture.NewFleet(t, 3, fixture.MaxUnavailable(test.atATime))
				f.DaemonSet.Spec.MinReadySeconds = 60
				for _, i := range test.soon {
					apps.Condition(f.Seen.Pods[i], corev1.PodReady).LastTransitionTime.Time = f.Seen.Now
				}
				if test.sick != "" {
					f.Ail(test.sick)
				}
				begin(f)
				var out []string
				for round := 0; round < 4 && len(out) == 0; round++ {
					f.Once()
					for _, step := range f.Steps {
						if name, is := strings.CutPrefix(step, "out "); is {
							out = append(out, name)
						}
					}
				}
				if !slices.Equal(out, test.want) {
					t.Errorf("%q have their turn, want %q: %q", out, test.want, f.Steps)
				}
			})
		}
	}
}

// TestEditSoonAfterRestarts: all pods have just restarted, and for 15 s their startup probes may revoke that they are Ready. They probably
// serve, and none counts as one that does. So none goes before that is known, and then one does.
func TestEditSoonAfterRestarts(t *testing.T) {
	f := fixture.NewFleet(t, 3)
	for _, pod := range f.Seen.Pods {
		fixture.Probed(&corev1.Probe{PeriodSeconds: 10}, nil, 0)(pod)
		pod.Status.ContainerStatuses[0].State = fixture.RunningSince(f.Seen.Now)
		apps.Condition(pod, corev1.ContainersReady).LastTransitionTime.Time = f.Seen.Now
	}
	f.Edit(fixture.App{Image: "bad"})
	takesOut := func(step string) bool { return strings.HasPrefix(step, "out ") }
	for second := 1; second < 15; second++ {
		if f.Once(); slices.ContainsFunc(f.Steps, takesOut) {
			t.Fatalf("second %d: %q", second, f.Steps)
		}
	}
	f.Rest()
	f.Expect("mark 2 true false", "out p1", "p1 is 2 app=bad")
}

func TestFinished(t *testing.T) {
	done := appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 3}
	for name, test := range map[string]struct {
		change func(*appsv1.DaemonSetStatus)
		want   bool
	}{
		"done": {func(*appsv1.DaemonSetStatus) {}, true},
		"more than done": {func(s *appsv1.DaemonSetStatus) {
			s.ObservedGeneration, s.UpdatedNumberScheduled, s.NumberAvailable = 3, 4, 4
		}, true},
		"edited since":       {func(s *appsv1.DaemonSetStatus) { s.ObservedGeneration = 1 }, false},
		"one is not updated": {func(s *appsv1.DaemonSetStatus) { s.UpdatedNumberScheduled = 2 }, false},
		"one is unavailable": {func(s *appsv1.DaemonSetStatus) { s.NumberAvailable = 2 }, false},
	} {
		d := &apps.DaemonSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: done}
		if test.change(&d.Status); daemonsets.Of(d).Finished() != test.want {
			t.Errorf("%s: finished is %t", name, !test.want)
		}
	}
}
