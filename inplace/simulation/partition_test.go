package simulation

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// repartition lets the users of every third world change the partition now and then. It has its own random numbers.
func (w *world) repartition() {
	if w.seed%3 != 1 {
		return
	}
	if w.dice == nil {
		w.dice = rand.New(rand.NewSource(w.seed))
	}
	if w.dice.Intn(4) == 0 {
		w.partition([]string{"", "", "0", "1", "2", "30%", "50%", "99%", "100%", "half"}[w.dice.Intn(10)])
	}
}

func (w *world) partition(value string) {
	w.user("sets the partition to "+value, func(d *apps.Deployment) {
		delete(d.Annotations, inplace.AnnotationPartition)
		if value != "" {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, inplace.AnnotationPartition, value)
		}
	})
}

// respectsPartition demands that a plan neither takes a pod out of service that must stay at the partition, nor resizes it. It counts the
// pods on old revisions whose update has not begun.
func (w *world) respectsPartition(r deployments.Rollout, plan steps.Plan) {
	kept := r.Seen.Settings.Partition.Keeps(int(apps.Desired(r.Deployment)))
	newRS, _ := plan.Decision.UpdateRevision.(*apps.ReplicaSet)
	if kept == 0 || newRS == nil || !plan.Decision.Held {
		return
	}
	begins := map[string]bool{}
	for _, step := range plan.Steps {
		if ready, ok := step.(steps.SetReady); ok && ready.Out && !readiness.Removing(ready.Pod) && len(readiness.MoveOf(ready.Pod).Resize) == 0 {
			begins[ready.Pod.Name] = true
		}
		if patch, ok := step.(steps.PatchPod); ok && notesASize(patch) && !readiness.MoveOf(patch.Pod).PartiallyPatched() { // such a pod goes on
			begins[patch.Pod.Name] = true
		}
	}
	left, beginsOld := 0, false
	for _, pod := range r.Seen.Pods {
		at := slices.IndexFunc(r.ReplicaSets, func(rs *apps.ReplicaSet) bool { return metav1.IsControlledBy(pod, rs) })
		if at < 0 || r.ReplicaSets[at] == newRS || r.ReplicaSets[at].Labels[inplace.LabelCurrent] == "" || !readiness.Live(pod) {
			continue
		}
		beginsOld = beginsOld || begins[pod.Name]
		if !readiness.Out(pod) && !begins[pod.Name] && len(readiness.MoveOf(pod).Resize) == 0 {
			left++
		}
	}
	if beginsOld && left < kept {
		w.violated("only %d pods are left on old revisions where partition %s demands %d", left, r.Seen.Settings.Partition.Value, kept)
	}
}

// notesASize reports whether the patch is the first one of a resize.
func notesASize(patch steps.PatchPod) bool {
	at := patches.Pointer("metadata", "annotations", inplace.AnnotationMove)
	return len(readiness.MoveOf(patch.Pod).Resize) == 0 && slices.ContainsFunc(patch.Operations, func(o jsonpatch.Operation) bool {
		mark := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{inplace.AnnotationMove: fmt.Sprint(o.Value)}}}
		return o.Path == at && len(readiness.MoveOf(mark).Resize) > 0
	})
}

func partitioned(value string) func(*apps.Deployment) {
	return func(d *apps.Deployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, inplace.AnnotationPartition, value)
		d.Spec.ProgressDeadlineSeconds = new(int32(600))
	}
}

// waits demands that the update waits at its partition, and that status and plan say so.
func (s *lockstep) waits(want string) {
	s.t.Helper()
	plan := s.rollout().Plan()
	if plan.Phase != steps.PhasePartition || plan.Message != want || len(plan.Steps) > 0 {
		s.t.Errorf("the plan is %s %q with %d steps", plan.Phase, plan.Message, len(plan.Steps))
	}
	progressing := apps.DeploymentCondition(s.deployment().Status, appsv1.DeploymentProgressing)
	if progressing == nil || progressing.Reason != deployments.ReasonPartition || progressing.Message != want ||
		progressing.Status != corev1.ConditionUnknown {
		s.t.Errorf("the status says %+v", progressing)
	}
	if deployments.LooksComplete(s.deployment(), s.deployment().Status) {
		s.t.Errorf("rollout status would not wait: %+v", s.deployment().Status)
	}
}

// has demands how many pods each ReplicaSet has, by its letter.
func (s *lockstep) has(want map[string]int) {
	s.t.Helper()
	got := map[string]int{}
	for _, pod := range s.pods.objects {
		if pod.DeletionTimestamp == nil {
			got[s.shortSet(metav1.GetControllerOf(pod).Name)]++
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("pods are %v, not %v", got, want)
	}
}

func TestStepsOfAPartition(t *testing.T) {
	s := newLockstep(t, 3, partitioned("50%"))
	before := sorted(s.pods.objects)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.expect("A marks", "B marks", "out 1", "A 3 → 2", "move 1", "B 0 → 1")
	s.waits("waiting at partition 50%: 1 of 3 pods updated")
	s.partition("1")
	s.rest()
	s.expect("out 2", "A 2 → 1", "move 2", "B 1 → 2")
	s.waits("waiting at partition 1: 2 of 3 pods updated")
	s.partition("100%")
	s.rest()
	s.expect()
	s.waits("waiting at partition 100%: 2 of 3 pods updated")
	s.partition("")
	s.rest()
	s.expect("out 3", "A 1 → 0", "move 3", "B 2 → 3", "A marks", "B marks")
	s.intact(before)
}

func TestPartitionThatKeepsAll(t *testing.T) {
	for value, phase := range map[string]steps.Phase{"100%": steps.PhasePartition, "3": steps.PhasePartition, "x": steps.PhaseStalled} {
		s := newLockstep(t, 3, partitioned(value))
		s.edit("sets the image", fixture.App{Image: "v2"})
		s.rest()
		s.expect("A marks", "B marks")
		if plan := s.rollout().Plan(); plan.Phase != phase {
			t.Errorf("%s: the plan is %s %q", value, plan.Phase, plan.Message)
		}
	}
}

func TestStepsOfLabelsAtAPartition(t *testing.T) {
	s := newLockstep(t, 3, partitioned("2"))
	s.edit("sets a label", fixture.App{Image: "v1", Chart: "c2"})
	s.rest()
	s.has(map[string]int{"A": 2, "B": 1})
	s.waits("waiting at partition 2: 1 of 3 pods updated")
	s.partition("0")
	s.rest()
	s.has(map[string]int{"B": 3})
}

// TestUndoAndEditAtAPartition: an undo takes all pods back. An edit updates the pods that have moved. Only pods that have not moved since
// the update began stay at the partition.
func TestUndoAndEditAtAPartition(t *testing.T) {
	for value, want := range map[string]map[string]int{"v1": {"A": 5}, "v3": {"A": 2, "C": 3}} {
		s := newLockstep(t, 5, partitioned("2"))
		before := sorted(s.pods.objects)
		s.edit("sets the image", fixture.App{Image: "v2"})
		s.rest()
		s.has(map[string]int{"A": 2, "B": 3})
		s.edit("sets the image to "+value, fixture.App{Image: value})
		s.rest()
		s.has(want)
		if value == "v1" {
			s.intact(before)
		}
	}
}

// TestUndoToARevisionThatWasStaged: an undo to the revision of an earlier partition updates all pods, because that partition was removed.
func TestUndoToARevisionThatWasStaged(t *testing.T) {
	s := newLockstep(t, 5, partitioned("2"))
	before := sorted(s.pods.objects)
	first := before[0].OwnerReferences[0].Name
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.has(map[string]int{"A": 2, "B": 3})
	s.partition("")
	s.rest()
	s.has(map[string]int{"B": 5})
	for _, want := range []string{first, s.rollout().UpdateRevision().Name} {
		s.undoTo(s.sets.objects[want])
		s.rest()
		s.has(map[string]int{s.shortSet(want): 5})
		if !s.complete() {
			t.Errorf("the undo to %s does not end: %s", want, s.describe())
		}
	}
	s.intact(before)
}

// TestOldReplicaSetThatIsMarkedLate: a ReplicaSet that is marked later than the others has pods from before the update, unless it was an
// update revision in between.
func TestOldReplicaSetThatIsMarkedLate(t *testing.T) {
	r := fixture.New(6, fixture.App{Image: "v3"})
	r.Seen.Settings.Partition.Value = "4"
	sets := map[string]*apps.ReplicaSet{"a": fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v0"}, 2),
		"b": fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v1"}, 2),
		"c": fixture.ReplicaSetOf(r, "c", fixture.App{Image: "v2"}, 2), "d": fixture.ReplicaSetOf(r, "d", fixture.App{Image: "v3"}, 0)}
	for _, name := range []string{"a1", "a2", "b1", "b2", "c1", "c2"} {
		fixture.PodOf(r, name, sets[name[:1]])
	}
	sets["a"].Labels[inplace.LabelUpdating], sets["a"].Labels[inplace.LabelCurrent] = fixture.Begun, fixture.Begun
	sets["c"].Labels[inplace.LabelUpdating] = fixture.Begun
	for _, step := range r.Plan().Steps {
		if patch, ok := step.(steps.PatchReplicaSet); ok {
			if err := fixture.Apply(patch.ReplicaSet, patch.Operations); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, old := range map[string]string{"a": fixture.Begun, "b": fixture.Begun, "c": "", "d": ""} {
		if got := sets[name].Labels[inplace.LabelCurrent]; got != old || sets[name].Labels[inplace.LabelUpdating] != fixture.Begun {
			t.Errorf("%s is marked %v", name, sets[name].Labels)
		}
	}
}

func TestRaisedPartitionTakesNoPodBack(t *testing.T) {
	s := newLockstep(t, 3, partitioned("1"))
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.until(s.moved(1))
	s.partition("100%")
	s.rest()
	s.has(map[string]int{"A": 2, "B": 1})
	s.waits("waiting at partition 100%: 1 of 3 pods updated")

	s.partition("1")
	s.until(func() bool { return slices.Contains(s.steps, "out 2") && slices.Contains(s.steps, "A 2 → 1") })
	s.partition("2")
	s.steps = nil
	s.rest()
	s.expect("back 2", "A 1 → 2") // not patched yet: as when the user pauses
}

func TestScalingAtAPartition(t *testing.T) {
	s := newLockstep(t, 4, partitioned("50%"))
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.has(map[string]int{"A": 2, "B": 2})
	for _, step := range []struct {
		replicas int32
		want     map[string]int
	}{{6, map[string]int{"A": 3, "B": 3}}, {3, map[string]int{"A": 2, "B": 1}}, {1, map[string]int{"A": 1}},
		{5, map[string]int{"A": 3, "B": 2}}} {
		s.user("scales", func(d *apps.Deployment) { d.Spec.Replicas = &step.replicas })
		s.rest()
		s.has(step.want)
		s.waits(fmt.Sprintf("waiting at partition 50%%: %d of %d pods updated", step.want["B"], step.replicas))
	}
}

func TestPausedAtAPartition(t *testing.T) {
	s := newLockstep(t, 3, partitioned("1"))
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.user("pauses", func(d *apps.Deployment) { d.Spec.Paused = true })
	s.partition("0")
	s.rest()
	s.has(map[string]int{"A": 1, "B": 2})
	s.partition("1")
	s.user("resumes", func(d *apps.Deployment) { d.Spec.Paused = false })
	s.rest()
	s.waits("waiting at partition 1: 2 of 3 pods updated")
}

// TestSurgeUpToAPartition: surge pods are removed when the update has reached its partition, and created again when it goes on.
func TestSurgeUpToAPartition(t *testing.T) {
	s := newLockstep(t, 3, func(d *apps.Deployment) {
		partitioned("1")(d)
		none, two := intstr.FromInt32(0), intstr.FromInt32(2)
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: &none, MaxSurge: &two}
	})
	s.settings.Surge = inplace.SurgeNeeded
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.has(map[string]int{"A": 1, "B": 2})
	s.waits("waiting at partition 1: 2 of 3 pods updated")
	if surges := strings.Count(strings.Join(s.steps, "\n"), "surge pod"); surges == 0 {
		t.Errorf("there was no surge pod: %q", s.steps)
	}
	s.partition("")
	s.rest()
	s.has(map[string]int{"B": 3})
}

// TestDeadlineAtAPartition: the deadline does not pass at a partition. It starts again when the update goes on.
func TestDeadlineAtAPartition(t *testing.T) {
	s := newLockstep(t, 3, partitioned("1"))
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.pass(30 * time.Minute)
	s.waits("waiting at partition 1: 2 of 3 pods updated")
	progressing := apps.DeploymentCondition(s.deployment().Status, appsv1.DeploymentProgressing)
	if age := s.now.Sub(progressing.LastUpdateTime.Time); age > 6*time.Minute {
		t.Errorf("after the partition the last progress would be %s ago", age)
	}
	s.edit("sets the image", fixture.App{Image: "bad"})
	s.rest()
	s.pass(12 * time.Minute)
	if s.stalled == "" || !deployments.Overdue(s.deployment()) {
		t.Errorf("the deadline does not pass before the partition is reached: %+v", s.deployment().Status)
	}
}

// TestDeadlineOfAFlawedPartition: an invalid value keeps all pods at the partition, and the deadline passes.
func TestDeadlineOfAFlawedPartition(t *testing.T) {
	s := newLockstep(t, 3, partitioned("half"))
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.pass(12 * time.Minute)
	progressing := apps.DeploymentCondition(s.deployment().Status, appsv1.DeploymentProgressing)
	if !deployments.Overdue(s.deployment()) || !strings.Contains(progressing.Message, `"half" is neither a number`) {
		t.Errorf("the status says %+v", progressing)
	}
	s.partition("")
	s.rest()
	s.has(map[string]int{"B": 3})
}

func TestDaemonStepsOfAPartition(t *testing.T) {
	f := fixture.NewFleet(t, 3).AtPartition("50%")
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.Expect("mark 1 false false", "mark 2 true false", "out p1", "p1 is 2 app=v2")
	if plan := f.Plan(); plan.Phase != steps.PhasePartition || plan.Message != "waiting at partition 50%: 1 of 3 pods updated" {
		t.Errorf("the plan is %s %q", plan.Phase, plan.Message)
	}
	if stays, why := f.HoldsDeletion(f.Seen.Pods[1]); !stays {
		t.Errorf("a pod at the partition may be deleted: %s", why.Message)
	}
	f.AtPartition("100%").Rest()
	f.Expect()
	f.AtPartition("1").Rest()
	f.Expect("out p2", "p2 is 2 app=v2")
	f.AtPartition("0").Rest()
	f.Expect("out p3", "p3 is 2 app=v2", "mark 1 false false", "mark 2 false false")
	f.UpdatedTo("2", "v2")
}

func TestDaemonsAtAPartition(t *testing.T) {
	for name, test := range map[string]struct {
		edit fixture.App
		want string
	}{
		"undo":         {fixture.App{Image: "v1"}, "1 1 1"},
		"further edit": {fixture.App{Image: "v3"}, "3 3 1"},
	} {
		f := fixture.NewFleet(t, 3).AtPartition("1")
		f.Edit(fixture.App{Image: "v2"})
		f.Rest()
		f.Edit(test.edit)
		f.Rest()
		var hashes []string
		for _, pod := range f.Seen.Pods {
			hashes = append(hashes, pod.Labels[inplace.LabelRevisionHash])
		}
		if got := strings.Join(hashes, " "); got != test.want {
			t.Errorf("%s: the pods are of %s, not %s", name, got, test.want)
		}
	}
}

// TestDaemonPartitionThatComesMidUpdate: a partition that is set while a pod is partially patched keeps no pod on the update revision. An
// undo takes all pods back.
func TestDaemonPartitionThatComesMidUpdate(t *testing.T) {
	f := fixture.NewFleet(t, 3, auxiliaryNames("app"))
	f.Edit(fixture.App{Image: "v2"})
	f.Once()
	f.Once()
	f.Expect("mark 2 true false", "p1 is updating-in-place app=v2")
	f.AtPartition("2").Rest()
	f.Expect("mark 1 false false", "p1 is 2 app=v2")
	if f.Revisions[1].Labels[inplace.LabelCurrent] != "" || f.Revisions[0].Labels[inplace.LabelCurrent] == "" {
		t.Errorf("noted as old: %v, %v", f.Revisions[0].Labels, f.Revisions[1].Labels)
	}
	f.Edit(fixture.App{Image: "v1"})
	f.Rest()
	f.UpdatedAll("1", "app=v1")
}

func TestDaemonsThatDoNotServeGoFirst(t *testing.T) {
	f := fixture.NewFleet(t, 3).AtPartition("2")
	f.Ail("p3")
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	if hash := f.Seen.Pods[2].Labels[inplace.LabelRevisionHash]; hash != "2" {
		t.Errorf("p3, which does not serve, stays at the partition: %q", f.Steps)
	}
}

func TestFlawedPartitionOfADaemonSet(t *testing.T) {
	f := fixture.NewFleet(t, 2).AtPartition("-1")
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.Expect("mark 1 false false", "mark 2 true false")
	if plan := f.Plan(); plan.Phase != steps.PhaseStalled || !strings.Contains(plan.Message, `"-1" is neither`) {
		t.Errorf("the plan is %s %q", plan.Phase, plan.Message)
	}
}
