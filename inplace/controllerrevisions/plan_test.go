package controllerrevisions_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
)

func TestDaemonStepsOfASidecar(t *testing.T) {
	for name, drains := range map[string]bool{"drains": true, "the last endpoint": false} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 1)
			f.Edit(fixture.App{Image: "v1", Mesh: "m1"})
			r := fixture.New(1, fixture.App{})
			f.Seen.Pods[0].Spec = fixture.PodOf(r, "made", fixture.ReplicaSetOf(r, "x", fixture.App{Image: "v1", Mesh: "m1"}, 1)).Spec
			f.Seen.Pods[0].Spec.NodeName, f.Seen.Pods[0].Status.InitContainerStatuses = "n1", r.Seen.Pods[0].Status.InitContainerStatuses
			f.Seen.Pods[0].Labels[inplace.LabelRevisionHash] = "2"
			if !drains {
				f.Last("p1")
			}
			f.Edit(fixture.App{Image: "v1", Mesh: "m2"})
			f.Rest()
			if drains {
				f.Expect("mark 3 true false", "out p1", "p1 is 3 app=v1,mesh=m2", "mark 3 false false")
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
	f.Expect("mark 2 true false", "out p1", "p1 is 2 app=v2", "out p2", "p2 is 2 app=v2", "mark 2 false false")
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

func TestDaemonStepsOfTheLastEndpoint(t *testing.T) {
	f := fixture.NewFleet(t, 1, func(f *fixture.Fleet) { f.Last("p1") })
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.Expect("mark 2 true false", "p1 is updating-in-place app=v2", "p1 is 2 app=v2", "mark 2 false false")
	f.UpdatedTo("2", "v2")
}

func TestDaemonUndoMidUpdateOfTheLastEndpoint(t *testing.T) {
	f := fixture.NewFleet(t, 2, func(f *fixture.Fleet) { f.Last("p1", "p2") })
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
	f.Expect("mark 3 true false", "out p1", "p1 is 3 app=v2", "mark 3 false true")
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
	f.Expect("mark 2 true false", "out p1", "back p1", "mark 2 false true")
	if decision := f.Decision(); decision.Held || decision.Reasons[0].Code != inplace.CodeFellBack {
		t.Errorf("decision is %+v after a fallback", decision)
	}
	if held, _ := f.HoldsDeletion(f.Seen.Pods[0]); held {
		t.Error("a deletion is held after a fallback")
	}
}

// TestDaemonFallBackWithNothingLeft: Stayput takes its mark off, and does not nudge a native controller that has nothing to do. It would
// leave a label on the revision, for ever if Stayput is being uninstalled.
func TestDaemonFallBackWithNothingLeft(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fixture.Fleet)
		want   string
	}{
		"a pod is left":  {func(*fixture.Fleet) {}, "mark 2 false true"},
		"no pod is left": {func(f *fixture.Fleet) { f.Seen.Pods[0].Labels[inplace.LabelRevisionHash] = "2" }, "mark 2 false false"},
		"the DaemonSet is being deleted": {func(f *fixture.Fleet) { f.DaemonSet.DeletionTimestamp = &metav1.Time{Time: fixture.Start} },
			"mark 2 false false"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 1)
			f.Edit(fixture.App{Image: "v2"})
			f.Once()
			f.Expect("mark 2 true false")
			test.change(f)
			for _, step := range f.FallBack(inplace.Reason{Code: inplace.CodeUninstalled, Message: "Stayput is being uninstalled"}).Steps {
				f.CarryOut(step)
			}
			f.Expect(test.want)
		})
	}
}

// TestDaemonFallBackWithoutRevisions: the update fell back, and then another client deletes all ControllerRevisions. The native controller
// is nudged by a pod, and the manager does not end.
func TestDaemonFallBackWithoutRevisions(t *testing.T) {
	f := fixture.NewFleet(t, 1)
	f.Edit(fixture.App{Image: "v2"})
	f.Seen.Fallback.Hash, f.Revisions = f.TemplateHash(), nil
	f.Once()
	if at := f.Seen.Pods[0].Annotations[inplace.AnnotationNudged]; at != inplace.FormatTime(f.Seen.Now) {
		t.Errorf("p1 was nudged at %q: %q", at, f.Steps)
	}
}

// TestNudge: a manager that ends nudges the native controller, unless that has nothing to do.
func TestNudge(t *testing.T) {
	onDelete := func(f *fixture.Fleet) {
		f.DaemonSet.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
		f.DaemonSet.Labels = map[string]string{inplace.LabelUpdate: inplace.InPlace}
	}
	for name, test := range map[string]struct {
		change func(*fixture.Fleet)
		want   int
	}{
		"a pod is to be updated":           {func(*fixture.Fleet) {}, 1},
		"all pods are updated":             {func(f *fixture.Fleet) { f.Seen.Pods[0].Labels[inplace.LabelRevisionHash] = "2" }, 0},
		"all revisions are gone":           {func(f *fixture.Fleet) { f.Revisions = nil }, 0},
		"pods stay until they are deleted": {onDelete, 0},
	} {
		f := fixture.NewFleet(t, 1)
		f.Edit(fixture.App{Image: "v2"})
		test.change(f)
		if nudges := f.Nudge(); len(nudges) != test.want {
			t.Errorf("%s: %d steps nudge, want %d", name, len(nudges), test.want)
		}
	}
}

// TestNudgeOfAnUpdatedStatefulSet: there is no pod by which its controller could be nudged.
func TestNudgeOfAnUpdatedStatefulSet(t *testing.T) {
	m := fixture.NewMembers(t, 1)
	m.Rest()
	if nudges := m.Of().Nudge(); len(nudges) > 0 {
		t.Errorf("%d steps nudge", len(nudges))
	}
}

// TestPodsOutOfServiceAwaitTheDryRun: two of three pods are out of service when the template changes again, and it is not known yet what
// admission makes of a new pod. Those that are still to restart stay out, so that they need not drain again. If nothing is to restart any
// more, they serve again at once. The third pod does not count as one in progress.
func TestPodsOutOfServiceAwaitTheDryRun(t *testing.T) {
	for name, test := range map[string]struct {
		edit fixture.App
		want []string
	}{
		"another image": {fixture.App{Image: "v3"}, nil},
		"only a label":  {fixture.App{Image: "v1", Chart: "c2"}, []string{"back p1", "back p2"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 3, fixture.MaxUnavailable("2"))
			f.Edit(fixture.App{Image: "v2"})
			f.Once()
			f.Once()
			f.Expect("mark 2 true false", "out p1", "out p2")
			f.Edit(test.edit)
			f.Seen.DryRun = dryrun.Result{}
			plan := f.Once()
			f.Expect(test.want...)
			if plan.Message != dryrun.Asking || plan.Progress.Moving != 2 {
				t.Errorf("%s %q, and %d pods are in progress, want 2", plan.Phase, plan.Message, plan.Progress.Moving)
			}
		})
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
	f.Expect("mark 2 true false", "p1 is updating-in-place app=v1", "p1 gets 200m", "out p1", "p1 is 2 app=v2",
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
	there := []string{"mark 2 true false", "out p1", "p1 is updating-in-place app=v1", "p1 gets 200m", "back p1", "p1 is 2 app=v1",
		"mark 2 false false"}
	back := []string{"out p1", "p1 is updating-in-place app=v1", "p1 gets 100m", "back p1", "p1 is 1 app=v1", "mark 1 false false"}
	begin := []string{"mark 1 true false", "mark 2 false false"}
	for made, then := range map[int][]string{
		1: {"mark 2 false false"},
		2: {"back p1", "mark 2 false false"},
		3: slices.Concat(begin, []string{"p1 is 1 app=v1", "back p1", "mark 1 false false"}),
		4: slices.Concat(begin, back[1:]), // it is out of service already
		5: slices.Concat([]string{"p1 is 2 app=v1"}, begin, back),
		6: slices.Concat(begin, back),
		7: slices.Concat(begin[:1], back),
	} {
		f := fixture.NewFleetOf(t, 1, fixture.App{Image: "v1", CPU: "100m", Renews: true})
		f.Edit(fixture.App{Image: "v1", CPU: "200m", Renews: true})
		for len(f.Steps) < made {
			f.Once()
		}
		f.Edit(fixture.App{Image: "v1", CPU: "100m", Renews: true})
		f.Rest()
		f.Expect(append(slices.Clone(there[:made]), then...)...)
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
	f.Edit(fixture.App{Image: "v1", CPU: "200m", Restarted: "1"})
	for range 30 {
		f.Once()
	}
	f.Expect("mark 2 true false", "p1 is updating-in-place app=v1", "p1 gets 200m", "renew p1", "out p1", "p1 is 2 app="+fixture.Another,
		"mark 2 false false")
	f.UpdatedTo("2", fixture.Another)
}

// TestDaemonWithoutWebhook: kubelets put a pod back all the time. It is drained for a while, and then restarts while it serves.
func TestDaemonWithoutWebhook(t *testing.T) {
	f := fixture.NewFleet(t, 1)
	f.Alone, f.Seen.Settings.Drain = true, 5*time.Second
	f.Seen.Endpoints = podstate.Endpoints{"p1": {Listed: true}}
	f.Edit(fixture.App{Image: "v2"})
	f.Once()
	var memory engine.Memory
	for range 10 {
		memory.Observe(f.Seen.Pods, f.Seen.Now)
		f.Seen.TakenOut = memory.TakenOut
		plan := f.Once()
		for _, step := range plan.Steps {
			memory.Made(step, f.Seen.Now)
		}
		f.Seen.Now = f.Seen.Now.Add(9 * time.Second)
	}
	f.Expect("mark 2 true false", "out p1", "out p1", "out p1", "out p1", "p1 is updating-in-place app=v2",
		"mark 2 true false", "p1 is 2 app=v2", "mark 2 false false") // the second mark renews the hold
}
