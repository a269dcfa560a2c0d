package deployments_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/disruption"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// stalled returns an update from ReplicaSet web-a to web-b that has exceeded its deadline, and is to be undone.
func stalled() *deployments.Rollout {
	r := fixture.Updating()
	r.Seen.Settings.UndoOnStall = true
	r.ReplicaSets[0].Labels[inplace.LabelCurrent] = fixture.Begun
	r.ReplicaSets[0].Annotations[inplace.AnnotationRevision], r.ReplicaSets[1].Annotations[inplace.AnnotationRevision] = "1", "2"
	timesOut(r, "web-b")
	hadItsTime(r, r.ReplicaSets[1])
	return r
}

// hadItsTime has the update to that ReplicaSet depend on nothing but itself for as long as its deadline.
func hadItsTime(r *deployments.Rollout, newRS *apps.ReplicaSet) {
	r.Seen.Unhindered = engine.Unhindered{UpdateRevision: newRS.UID, Since: fixture.Start.Add(-deployments.Deadline(r.Deployment))}
}

// timesOut has the ReplicaSet exceed the deadline.
func timesOut(r *deployments.Rollout, name string) {
	r.Deployment.Status.Conditions[0] = deployments.NewCondition("Progressing", corev1.ConditionFalse, deployments.ReasonTimedOut,
		`ReplicaSet "`+name+`" has timed out progressing.`, fixture.Start)
}

// forged adds a ReplicaSet of another client, created at that time, that looks as if it were the newest that pods had.
func forged(r *deployments.Rollout, created time.Time) {
	rs := fixture.ReplicaSetOf(r, "x", fixture.App{Image: "v-x"}, 0)
	rs.CreationTimestamp = metav1.NewTime(created)
	rs.Annotations[inplace.AnnotationRevision], rs.Labels[inplace.LabelCurrent] = "999", fixture.Begun
}

func undoIn(plan steps.Plan) (steps.UndoStalled, bool) {
	for _, step := range plan.Steps {
		if undo, is := step.(steps.UndoStalled); is {
			return undo, true
		}
	}
	return steps.UndoStalled{}, false
}

// TestStalledUpdatesAreUndone checks which updates are undone, and what is said of those that are not.
func TestStalledUpdatesAreUndone(t *testing.T) {
	for name, test := range map[string]struct {
		change func(r *deployments.Rollout)
		undone bool
		whyNot string // a part
	}{
		"stalled":   {func(*deployments.Rollout) {}, true, ""},
		"not asked": {func(r *deployments.Rollout) { r.Seen.Settings.UndoOnStall = false }, false, ""},
		"paused":    {func(r *deployments.Rollout) { r.Deployment.Spec.Paused = true }, false, ""},
		"progressing": {func(r *deployments.Rollout) {
			r.Deployment.Status.Conditions[0].Reason = deployments.ReasonUpdated
		}, false, ""},
		"the status names another ReplicaSet": {func(r *deployments.Rollout) { timesOut(r, "web-a") }, true, ""},
		"a pod has just become available": {func(r *deployments.Rollout) {
			r.Deployment.Status.AvailableReplicas--
		}, false, ""},
		"the template was edited": {func(r *deployments.Rollout) { r.Deployment.Generation = 2 }, false, ""},
		"native": {func(r *deployments.Rollout) {
			r.Seen.Fallback = revisions.Fallback{Hash: r.TemplateHash()}
		}, false, ""},
		"undone before": {func(r *deployments.Rollout) {
			r.Deployment.Annotations[inplace.AnnotationUndone] = "web-b"
		}, false, "it was undone before"},
		"another one undone before": {func(r *deployments.Rollout) {
			r.Deployment.Annotations[inplace.AnnotationUndone] = "web-c"
		}, true, ""},
		"itself on the way back": {func(r *deployments.Rollout) {
			r.ReplicaSets[0].Labels[inplace.LabelCurrent], r.ReplicaSets[1].Labels[inplace.LabelCurrent] = "", fixture.Begun
		}, false, "goes back to ReplicaSet web-b"},
		"no revision before": {func(r *deployments.Rollout) { r.ReplicaSets[0].Labels[inplace.LabelCurrent] = "1" }, false,
			"no ReplicaSet is left"},
		"a revision that was created since": {func(r *deployments.Rollout) { // the mark is forged, and the number is the highest
			forged(r, fixture.Start.Add(time.Second))
		}, true, ""},
		"only one that was created since": {func(r *deployments.Rollout) {
			r.ReplicaSets[0].CreationTimestamp = metav1.NewTime(fixture.Start.Add(time.Second))
		}, false, "no ReplicaSet is left"},
		"two revisions before": {func(r *deployments.Rollout) { forged(r, fixture.Start.Add(-time.Hour)) }, false,
			"pods had 2 ReplicaSets when the update began"},
		"not accepted": {func(r *deployments.Rollout) {
			r.Seen.RefusedUndo = steps.RefusedUndo{UpdateRevision: r.ReplicaSets[1].UID, Why: "no"}
		}, false, "does not accept it: no"},
		"another one not accepted": {func(r *deployments.Rollout) {
			r.Seen.RefusedUndo = steps.RefusedUndo{UpdateRevision: "c", Why: "no"}
		}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := stalled()
			test.change(r)
			plan := r.Plan()
			undo, undone := undoIn(plan)
			if undone && !strings.Contains(undo.Why, "ReplicaSet web-a") {
				t.Errorf("it goes to another revision: %s", undo.Why)
			}
			if undone != test.undone || (plan.NotUndone != "") != (test.whyNot != "") ||
				!strings.Contains(plan.NotUndone, test.whyNot) {
				t.Errorf("undone: %t, not undone: %q", undone, plan.NotUndone)
			}
		})
	}
}

// TestOnlyItsOwnTimeCounts has, minute by minute, what changes in a stalled update, and whether a leader undoes it then. Its deadline is
// ten minutes. The status says all the time that it is exceeded. The leader begins in minute 0.
func TestOnlyItsOwnTimeCounts(t *testing.T) {
	type minute struct {
		at     int
		change func(*deployments.Rollout)
		undone bool
	}
	as := func(*deployments.Rollout) {}
	budgetKeeps := func(r *deployments.Rollout) { r.Seen.Disruption = fixture.Protected(4, 4, r.Seen.Pods) }
	budgetAllows := func(r *deployments.Rollout) { r.Seen.Disruption = disruption.Seen{} }
	keeps := func(partition inplace.Partition) func(*deployments.Rollout) {
		return func(r *deployments.Rollout) { r.Seen.Settings.Partition = partition }
	}
	partition := func(value string) func(*deployments.Rollout) { return keeps(inplace.Partition{Value: value}) }
	closed, _ := inplace.Window("Sat 02:00-04:00").Keeping(inplace.Partition{}, time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))
	for name, minutes := range map[string][]minute{
		"it stalls":                   {{0, as, false}, {9, as, false}, {10, as, true}},
		"edited":                      {{0, as, false}, {9, editTo("c"), false}, {18, as, false}, {19, as, true}},
		"edited to an old ReplicaSet": {{0, as, false}, {9, editBackTo("h"), false}, {18, as, false}, {19, as, true}},
		"edited to and fro":           {{0, as, false}, {8, editTo("c"), false}, {9, backToB, false}, {18, as, false}, {19, as, true}},
		"paused": {{0, as, false}, {5, paused(true), false}, {30, as, false},
			{31, paused(false), false}, {40, as, false}, {41, as, true}},
		"a budget":                    {{0, budgetKeeps, false}, {30, as, false}, {31, budgetAllows, false}, {40, as, false}, {41, as, true}},
		"a budget, later":             {{0, as, false}, {9, budgetKeeps, false}, {30, as, false}, {31, budgetAllows, false}, {41, as, true}},
		"a budget, but a pod crashes": {{0, crashes, false}, {1, budgetKeeps, false}, {10, as, true}},
		"a limit":                     {{0, limits(1), false}, {30, as, false}, {31, limits(4), false}, {40, as, false}, {41, as, true}},
		"a partition": {{0, partition("2"), false}, {30, as, false},
			{31, partition(""), false}, {40, as, false}, {41, as, true}},
		"a partition, but a pod crashes": {{0, crashes, false}, {1, partition("2"), false}, {10, as, true}},
		"no valid partition": {{0, partition("x"), false}, {30, as, false},
			{31, partition("0"), false}, {40, as, false}, {41, as, true}},
		"a closed window": {{0, keeps(closed), false}, {30, as, false},
			{31, partition(""), false}, {40, as, false}, {41, as, true}},
		"a closed window, later": {{0, as, false}, {9, keeps(closed), false}, {30, as, false},
			{31, partition(""), false}, {41, as, true}},
		"a window closes in a stall":     {{0, as, false}, {10, keeps(closed), false}},
		"a budget keeps pods in a stall": {{0, as, false}, {10, budgetKeeps, false}},
		"paused in a stall":              {{0, as, false}, {10, paused(true), false}},
		"asked in the middle of a stall": {{0, asked(false), false}, {10, as, false}, {11, asked(true), true}},
	} {
		t.Run(name, func(t *testing.T) {
			r, memory := stalled(), engine.Memory{}
			for _, minute := range minutes {
				minute.change(r)
				r.Seen.Now, r.Seen.Unhindered = fixture.Start.Add(time.Duration(minute.at)*time.Minute), memory.Unhindered
				plan := r.Plan()
				memory.Planned(plan, r.Seen.Now)
				if undo, undone := undoIn(plan); undone != minute.undone {
					t.Errorf("minute %d: undone: %t, %s", minute.at, undone, undo.Why)
				}
			}
		})
	}
}

func paused(is bool) func(*deployments.Rollout) {
	return func(r *deployments.Rollout) { r.Deployment.Spec.Paused = is }
}

func asked(is bool) func(*deployments.Rollout) {
	return func(r *deployments.Rollout) { r.Seen.Settings.UndoOnStall = is }
}

func limits(most int) func(*deployments.Rollout) {
	return func(r *deployments.Rollout) { share(r, most) }
}

// crashes has a pod of the update revision not be available.
func crashes(r *deployments.Rollout) {
	fixture.Unready(r.Seen.Pods[2])
	r.ReplicaSets[1].Status.ReadyReplicas, r.ReplicaSets[1].Status.AvailableReplicas = 1, 1
	r.Deployment.Status.ReadyReplicas, r.Deployment.Status.AvailableReplicas, r.Deployment.Status.UnavailableReplicas = 3, 3, 1
}

// editTo has the user edit the template in the middle of the update. The native controller keeps the time of the condition.
func editTo(hash string) func(*deployments.Rollout) {
	return func(r *deployments.Rollout) {
		editBackTo(hash)(r)
		timesOut(r, "web-"+hash)
	}
}

// editBackTo has the user edit it to that of a ReplicaSet which exists. The native controller keeps the condition.
func editBackTo(hash string) func(*deployments.Rollout) {
	return func(r *deployments.Rollout) {
		a := fixture.App{Image: "v-" + hash}
		r.Deployment.Spec.Template = a.Template()
		newRS := fixture.ReplicaSetOf(r, hash, a, 0)
		newRS.Labels[inplace.LabelUpdating] = fixture.Begun
		r.Seen.DryRun = fixture.Admitted(newRS)
		r.Deployment.Status.UpdatedReplicas = 0
	}
}

func backToB(r *deployments.Rollout) {
	r.Deployment.Spec.Template, r.Seen.DryRun = fixture.App{Image: "v2"}.Template(), fixture.Admitted(r.ReplicaSets[1])
	r.Deployment.Status.UpdatedReplicas = 2
}

// TestOneWayUpdatesAreNotUndone: running pods keep an added toleration, so the native controller would replace them.
func TestOneWayUpdatesAreNotUndone(t *testing.T) {
	r := stalled()
	template := fixture.App{Image: "v2", Tolerates: "spot"}.Template()
	r.ReplicaSets[1].Spec.Template, r.Deployment.Spec.Template = template, template
	r.Seen.DryRun = fixture.Admitted(r.ReplicaSets[1])
	plan := r.Plan()
	if _, undone := undoIn(plan); undone || !strings.Contains(plan.NotUndone, "pods would be replaced on the way back to ReplicaSet web-a") {
		t.Errorf("undone: %t, not undone: %q", undone, plan.NotUndone)
	}
}

// TestUndoOfAStalledUpdate checks what the write makes of the Deployment, that it is the only write to it, and that no pod moves any more.
func TestUndoOfAStalledUpdate(t *testing.T) {
	r := stalled()
	r.Deployment.ResourceVersion = "7"
	r.Deployment.Annotations["kubernetes.io/change-cause"], r.Deployment.Annotations["new"] = "to v2", "x"
	r.Deployment.Annotations[inplace.AnnotationUpdateLast] = "role=leader"
	r.ReplicaSets[0].Annotations["kubernetes.io/change-cause"], r.ReplicaSets[0].Annotations[inplace.AnnotationUpdateLast] = "to v1", "old"
	plan := r.Plan()
	undo, is := undoIn(plan)
	if !is || plan.Phase != steps.PhaseStalled || slices.ContainsFunc(plan.Steps, func(step steps.Step) bool {
		switch step.(type) {
		case steps.PatchStatus, steps.PatchPod, steps.SetReady:
			return true
		}
		return false
	}) {
		t.Fatalf("phase %s, steps %v", plan.Phase, plan.Steps)
	}
	if guard := undo.Operations[0]; guard.Path != "/metadata/resourceVersion" || guard.Value != "7" {
		t.Errorf("the guard is %v", guard)
	}
	after := r.Deployment.DeepCopyObject().(*apps.Deployment)
	if err := fixture.Apply(after, undo.Operations); err != nil {
		t.Fatal(err)
	}
	if !apps.SameTemplate(after.Spec.Template, r.ReplicaSets[0].Spec.Template) {
		t.Errorf("the template is %s", fixture.RawOf(after.Spec.Template))
	}
	for key, want := range map[string]string{inplace.AnnotationUndone: "web-b", "kubernetes.io/change-cause": "to v1", "new": "",
		inplace.AnnotationUpdateLast: "role=leader", inplace.AnnotationRevision: "1"} {
		if got := after.Annotations[key]; got != want {
			t.Errorf("annotation %s is %q instead of %q", key, got, want)
		}
	}
	const why = `label stayput.dev/on-stall is undo, and the update has stalled: ReplicaSet "web-b" has timed out progressing. ` +
		"The template goes back to that of ReplicaSet web-a"
	if undo.Why != why {
		t.Errorf("it says %q", undo.Why)
	}
}

// TestNewestRevisionBefore: an edit in the middle of an update is undone to what pods had when it began, not to the edit before.
func TestNewestRevisionBefore(t *testing.T) {
	r := stalled()
	template := fixture.App{Image: "v3"}.Template()
	r.Deployment.Spec.Template = template
	newRS := fixture.ReplicaSetOf(r, "c", fixture.App{Image: "v3"}, 0)
	newRS.Labels[inplace.LabelUpdating], newRS.Annotations[inplace.AnnotationRevision] = fixture.Begun, "3"
	timesOut(r, "web-c")
	hadItsTime(r, newRS)
	if undo, is := undoIn(r.Plan()); !is || !strings.HasSuffix(undo.Why, "to that of ReplicaSet web-a") {
		t.Errorf("undone: %t, %q", is, undo.Why)
	}
}

// TestUndoOfARestartForConfigurationOnStall: the event says that pods that have not restarted keep the former one.
func TestUndoOfARestartForConfigurationOnStall(t *testing.T) {
	r := stalled()
	template := fixture.App{Image: "v1", Configuration: "1"}.Template()
	r.Deployment.Spec.Template, r.ReplicaSets[1].Spec.Template = template, template
	r.Seen.DryRun = fixture.Admitted(r.UpdateRevision())
	if undo, is := undoIn(r.Plan()); !is || !strings.HasSuffix(undo.Why, "to that of ReplicaSet web-a; "+steps.FormerConfiguration) {
		t.Errorf("undone: %t, %q", is, undo.Why)
	}
}

// TestUpdateThatMayBeUndoneDoesNotEnd: all pods have moved, and the only one is not available. Without the marks, it would not be known
// which revision pods had before.
func TestUpdateThatMayBeUndoneDoesNotEnd(t *testing.T) {
	for name, test := range map[string]struct {
		change func(r *deployments.Rollout)
		ends   bool
	}{
		"to be undone": {func(*deployments.Rollout) {}, false},
		"not asked":    {func(r *deployments.Rollout) { r.Seen.Settings.UndoOnStall = false }, true},
		"no deadline":  {func(r *deployments.Rollout) { r.Deployment.Spec.ProgressDeadlineSeconds = nil }, true},
		"a way back":   {func(r *deployments.Rollout) { r.ReplicaSets[1].Labels[inplace.LabelCurrent] = fixture.Begun }, true},
		"undone before": {func(r *deployments.Rollout) {
			timesOut(r, "web-b")
			hadItsTime(r, r.ReplicaSets[1])
			r.Deployment.Annotations[inplace.AnnotationUndone] = "web-b"
		}, true},
		"it has just made progress": {func(r *deployments.Rollout) {
			timesOut(r, "web-b")
			hadItsTime(r, r.ReplicaSets[1])
			r.Deployment.Status.UpdatedReplicas = 0
		}, false},
		"only the deadline of an update before has passed": {func(r *deployments.Rollout) { timesOut(r, "web-b") }, false},
		"not accepted for now": {func(r *deployments.Rollout) {
			timesOut(r, "web-b")
			hadItsTime(r, r.ReplicaSets[1])
			r.Seen.RefusedUndo = steps.RefusedUndo{UpdateRevision: r.ReplicaSets[1].UID, Why: "no"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := allMoved()
			test.change(r)
			plan := r.Plan()
			ends := slices.ContainsFunc(plan.Steps, func(step steps.Step) bool {
				set, is := step.(steps.PatchReplicaSet)
				return is && strings.Contains(set.Why, "marks")
			})
			if ends != test.ends {
				t.Errorf("it ends: %t, with %v", ends, plan.Steps)
			}
		})
	}
}

// allMoved returns an update whose only pod has moved, and is not available.
func allMoved() *deployments.Rollout {
	r := fixture.New(1, fixture.App{Image: "v2"})
	r.Seen.Settings.UndoOnStall = true
	for i, hash := range []string{"a", "b"} {
		rs := fixture.ReplicaSetOf(r, hash, fixture.App{Image: []string{"v1", "v2"}[i]}, int32(i))
		rs.Labels[inplace.LabelUpdating], rs.Labels[inplace.LabelReplicas] = fixture.Begun, []string{"0", "1"}[i]
		rs.Labels[inplace.LabelRenewed] = fixture.Begun
	}
	r.ReplicaSets[0].Labels[inplace.LabelCurrent] = fixture.Begun
	fixture.PodOf(r, "p", r.ReplicaSets[1], fixture.Unready)
	r.Deployment.Status.ObservedGeneration, r.Deployment.Status.Replicas, r.Deployment.Status.UpdatedReplicas = 1, 1, 1
	r.Deployment.Status.Conditions = append(r.Deployment.Status.Conditions,
		deployments.NewCondition("Progressing", corev1.ConditionTrue, deployments.ReasonUpdated, "", fixture.Start))
	return r
}

// TestUndoKeepsWhatWasUndone checks that a user's undo keeps the note of what was undone on stall, which the old revision does not have.
func TestUndoKeepsWhatWasUndone(t *testing.T) {
	r := fixture.Updating()
	before := map[string]string{inplace.AnnotationUndone: "web-c", inplace.AnnotationRevision: "3"}
	r.Deployment.Annotations = map[string]string{inplace.AnnotationRevision: "3"}
	r.ReplicaSets[1].Annotations = map[string]string{}
	if kept := r.Undone(before); len(kept) != 1 || kept[0].Key != inplace.AnnotationUndone || kept[0].Value != "web-c" {
		t.Errorf("kept is %v", kept)
	}
}
