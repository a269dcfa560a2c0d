package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// TestDrains tests which pods are taken out of service, and which write comes first.
func TestDrains(t *testing.T) {
	side := fixture.Reimaged("side", "s2").Containers
	both := slices.Concat(fixture.Reimaged("app", "v2").Containers, side)
	for name, c := range map[string]struct {
		needs   edit.ContainerChanges
		list    string
		change  func(*corev1.Pod)
		updated bool
		drains  bool
		writes  podstate.Outcome
	}{
		"nothing restarts":                {nil, "side", nil, false, false, podstate.EndsMoved},
		"auxiliary":                       {side, "side", nil, false, false, podstate.EndsPartial},
		"auxiliary, with another":         {side, "metrics,side", nil, false, false, podstate.EndsPartial},
		"not auxiliary":                   {side, "metrics", nil, false, true, podstate.EndsMoved},
		"a list that does not parse":      {side, "*", nil, false, true, podstate.EndsMoved},
		"auxiliary, and another restarts": {both, "side", nil, false, true, podstate.EndsMoved},
		"all are auxiliary":               {both, "side,app", nil, false, false, podstate.EndsPartial},
		"it is out of service already":    {side, "side", fixture.Out, false, true, podstate.EndsMoved},
		"it is out, and nothing restarts": {nil, "side", fixture.Out, false, false, podstate.EndsMoved},
		"back":                            {side, "side", nil, true, false, podstate.EndsBack},
		"back, and no longer auxiliary":   {side, "metrics", nil, true, false, podstate.EndsBack},
		"back, and out of service":        {side, "side", fixture.Out, true, false, podstate.EndsBack},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1", Sidecar: "s1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1", Sidecar: "s1"}, 1))
			if c.change != nil {
				c.change(pod)
			}
			s := &podstate.Work{
				MarkedPod: podstate.MarkedPod{Pod: pod, PodRevision: podstate.PodRevision{Updated: c.updated}}, Containers: c.needs,
				Auxiliary: inplace.AuxiliaryOf(map[string]string{inplace.AnnotationAuxiliary: c.list}),
			}
			if s.Drains() != c.drains || s.NextWrite().Ends != c.writes {
				t.Errorf("it drains: %t, and the next write ends %d", s.Drains(), s.NextWrite().Ends)
			}
		})
	}
}

// setAuxiliary lists the auxiliary containers of a Deployment.
func setAuxiliary(names string) func(*apps.Deployment) {
	return func(d *apps.Deployment) { d.Annotations[inplace.AnnotationAuxiliary] = names }
}

// newSideObserved returns a Deployment of pods with a second container, which is auxiliary, and its pods.
func newSideLockstep(t *testing.T, replicas int32) (*lockstep, []*corev1.Pod) {
	s := newLockstep(t, replicas, func(d *apps.Deployment) {
		d.Spec.Template = fixture.App{Image: "v1", Sidecar: "s1"}.Template()
		setAuxiliary("side")(d)
	})
	s.world.rules.listed = inplace.Auxiliary{"side"}
	s.now = s.now.Add(readiness.KubeletMargin)
	return s, sorted(s.pods.objects)
}

func TestStepsOfAnAuxiliaryContainer(t *testing.T) {
	s, before := newSideLockstep(t, 2)
	s.edit("sets the side's image", fixture.App{Image: "v1", Sidecar: "s2"})
	s.rest()
	s.expect("A marks", "B marks",
		"patch 1", "A 2 → 1", "move 1", "B 0 → 1",
		"patch 2", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
	s.intact(before)
	for _, pod := range before {
		if app := s.kubelet.state[pod.Name]["app"]; app.id != pod.Status.ContainerStatuses[0].ContainerID {
			t.Errorf("the application of %s restarted", pod.Name)
		}
	}
	s.edit("undoes", fixture.App{Image: "v1", Sidecar: "s1"})
	s.rest()
	s.expect("A marks", "B marks",
		"patch 1", "B 2 → 1", "move 1", "A 0 → 1",
		"patch 2", "B 1 → 0", "move 2", "A 1 → 2", "A marks", "B marks")
	s.intact(before)
}

func TestStepsOfAnAuxiliaryContainerAndTheApplication(t *testing.T) {
	s, before := newSideLockstep(t, 1)
	s.edit("sets both images", fixture.App{Image: "v2", Sidecar: "s2"})
	s.rest()
	s.expect("A marks", "B marks", "out 1", "A 1 → 0", "move 1", "B 0 → 1", "A marks", "B marks")
	s.intact(before)
}

// sidePartial stops in the middle of an update: pod 1 is updated, pod 2 restarts its second container, pod 3 is untouched.
func sidePartial(t *testing.T) (*lockstep, []*corev1.Pod) {
	s, before := newSideLockstep(t, 3)
	s.edit("sets the side's image", fixture.App{Image: "v1", Sidecar: "s2"})
	s.until(s.moved(3))
	s.expect("A marks", "B marks", "patch 1", "A 3 → 2", "move 1", "B 0 → 1", "patch 2")
	s.now = s.now.Add(time.Second) // ReplicaSets that are created in one second have the order of their names
	return s, before
}

func TestAuxiliaryMidUpdate(t *testing.T) {
	third := []string{"patch 3", "A 1 → 0", "move 3", "B 2 → 3", "A marks", "B marks"}
	for name, c := range map[string]struct {
		does func(*lockstep)
		want []string
	}{
		"undo": {func(s *lockstep) { s.edit("undoes", fixture.App{Image: "v1", Sidecar: "s1"}) },
			[]string{"patch 2", "patch 1", "B 1 → 0", "move 1", "A 2 → 3", "A marks", "B marks"}},
		"the application, too": {func(s *lockstep) { s.edit("edits", fixture.App{Image: "v2", Sidecar: "s2"}) },
			[]string{"C marks", "out 2", "A 2 → 1", "move 2", "C 0 → 1", "out 1", "B 1 → 0", "move 1", "C 1 → 2",
				"out 3", "A 1 → 0", "move 3", "C 2 → 3", "A marks", "B marks", "C marks"}},
		"no longer auxiliary": {func(s *lockstep) { s.user("waits", setAuxiliary("ghost")) },
			[]string{"A 2 → 1", "move 2", "B 1 → 2", "out 3", "A 1 → 0", "move 3", "B 2 → 3", "A marks", "B marks"}},
		"a list that does not parse": {func(s *lockstep) { s.user("lists", setAuxiliary("side,")) },
			[]string{"A 2 → 1", "move 2", "B 1 → 2", "out 3", "A 1 → 0", "move 3", "B 2 → 3", "A marks", "B marks"}},
		"no longer auxiliary, and undo": {func(s *lockstep) {
			s.user("waits", setAuxiliary("ghost"))
			s.edit("undoes", fixture.App{Image: "v1", Sidecar: "s1"})
		}, []string{"patch 2", "out 1", "B 1 → 0", "move 1", "A 2 → 3", "A marks", "B marks"}},
		"pause and resume": {func(s *lockstep) {
			s.user("pauses", func(d *apps.Deployment) { d.Spec.Paused = true })
			s.rest()
			s.expect("A 2 → 1", "move 2", "B 1 → 2")
			s.user("resumes", func(d *apps.Deployment) { d.Spec.Paused = false })
		}, third},
		// the same edit of the side's image, and a label
		"label": {func(s *lockstep) { s.edit("edits", fixture.App{Image: "v1", Sidecar: "s2", Chart: "c2"}) },
			[]string{"C marks", "A 2 → 1", "move 2", "C 0 → 1", "B 1 → 0", "move 1", "C 1 → 2",
				"patch 3", "A 1 → 0", "move 3", "C 2 → 3", "A marks", "B marks", "C marks"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, before := sidePartial(t)
			c.does(s)
			s.rest()
			s.expect(c.want...)
			s.intact(before)
		})
	}
}

// TestListedWhileOut: a pod that was taken out of service before its container was listed as auxiliary goes on as usual.
func TestListedWhileOut(t *testing.T) {
	s, before := newSideLockstep(t, 2)
	s.user("waits", setAuxiliary("ghost"))
	s.edit("sets the side's image", fixture.App{Image: "v1", Sidecar: "s2"})
	s.until(func() bool { return slices.Contains(s.steps, "out 1") })
	s.user("waits no longer", setAuxiliary("side"))
	s.rest()
	s.expect("A marks", "B marks", "out 1", "A 2 → 1", "move 1", "B 0 → 1",
		"patch 2", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
	s.intact(before)
}

func TestAuxiliaryScaledMidUpdate(t *testing.T) {
	for name, replicas := range map[string]int32{"up": 5, "down": 2} {
		t.Run(name, func(t *testing.T) {
			s, _ := sidePartial(t)
			s.user("scales", func(d *apps.Deployment) { d.Spec.Replicas = &replicas })
			s.rest()
			s.intact(nil)
			if out := slices.DeleteFunc(s.steps, func(step string) bool { return !strings.HasPrefix(step, "out") }); len(out) > 0 {
				t.Errorf("pods were taken out of service: %v", out)
			}
		})
	}
}

// TestLabelTakenOffWhileAnAuxiliaryRestarts: without the label of the namespace the pod gets its old image back, which the policies allow,
// and the native controllers go on.
func TestLabelTakenOffWhileAnAuxiliaryRestarts(t *testing.T) {
	s, _ := sidePartial(t)
	s.mode = inplace.ModeNone
	s.plan()
	if !slices.Contains(s.steps, "patch 2") {
		t.Errorf("pod 2 did not go back: %v", s.steps)
	}
	s.rest()
	s.intact(nil)
}

// TestAuxiliaryWherePodsMayNotBeMissed: auxiliary containers save no surge pod. A pod is unavailable while any of its containers restarts.
func TestAuxiliaryWherePodsMayNotBeMissed(t *testing.T) {
	s, before := newSideLockstep(t, 2)
	s.user("sets maxUnavailable 0", func(d *apps.Deployment) { d.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(0)) })
	s.settings.Surge = inplace.SurgeNeeded
	s.edit("sets the side's image", fixture.App{Image: "v1", Sidecar: "s2"})
	s.rest()
	s.expect("A marks", "B marks", "B 0 → 1, marks", "3 surge pod",
		"patch 1", "A 2 → 1", "move 1", "B 1 → 2", "patch 2", "A 1 → 0", "move 2", "B 2 → 3",
		"3 surge pod to remove", "out 3", "B 3 → 2", "A marks", "B marks")
	s.intact(before)
}

// auxiliaryNames lists the auxiliary containers of the DaemonSet.
func auxiliaryNames(names string) func(*fixture.Fleet) {
	return func(f *fixture.Fleet) {
		f.DaemonSet.Annotations = map[string]string{inplace.AnnotationAuxiliary: names}
	}
}

func TestDaemonStepsOfAnAuxiliaryContainer(t *testing.T) {
	f := fixture.NewFleet(t, 2, auxiliaryNames("app"))
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.Expect("mark 2 true false", "p1 is updating-in-place app=v2", "p1 is 2 app=v2", "p2 is updating-in-place app=v2", "p2 is 2 app=v2",
		"mark 2 false false")
	f.UpdatedTo("2", "v2")
}

func TestDaemonAuxiliaryMidUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		does func(*fixture.Fleet)
		want []string
	}{
		"undo": {func(f *fixture.Fleet) { f.Edit(fixture.App{Image: "v1"}) },
			[]string{"mark 1 true false", "mark 2 false false", "p1 is updating-in-place app=v1", "p1 is 1 app=v1", "mark 1 false false"}},
		"no longer auxiliary": {func(f *fixture.Fleet) { auxiliaryNames("ghost")(f); f.Edit(fixture.App{Image: "v3"}) },
			[]string{"mark 3 true false", "mark 2 false false", "out p1", "p1 is 3 app=v3", "out p2", "p2 is 3 app=v3",
				"mark 3 false false"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 2, auxiliaryNames("app"))
			f.Edit(fixture.App{Image: "bad"})
			f.Rest()
			f.Expect("mark 2 true false", "p1 is updating-in-place app=bad")
			c.does(f)
			f.Rest()
			f.Expect(c.want...)
		})
	}
}

// TestAuxiliaryWaitsForItsImage: images of auxiliary containers are pulled first, too.
func TestAuxiliaryWaitsForItsImage(t *testing.T) {
	s, before := newSideLockstep(t, 2)
	s.pulls(2)
	s.edit("sets the side's image", fixture.App{Image: "v1", Sidecar: "s2"})
	s.rest()
	s.expect("pull n1", "pull n2", "A marks", "B marks",
		"patch 1", "drop n1", "A 2 → 1", "move 1", "B 0 → 1",
		"patch 2", "drop n2", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
	s.intact(before)
}

// TestStoredWhileAnAuxiliaryRestarts: the webhook leaves reports as they are of a pod whose container restarts while it serves.
func TestStoredWhileAnAuxiliaryRestarts(t *testing.T) {
	gone := func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{}
		fixture.Unready(pod)
	}
	for name, report := range map[string]func(*corev1.Pod){"its old container runs": func(*corev1.Pod) {}, "it is gone": gone} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v2"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1))
			pod.Spec.Containers[0].Image, pod.Generation, pod.Status.ObservedGeneration = "v2", 2, 2
			pod.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "b", Generation: 2,
				Containers: map[string]readiness.MovedContainer{
					"app": {Image: "v2", ImageID: "sha256:v1", ContainerID: "p/app"}}, Back: map[string]string{"app": "v1"}}.String()}
			old := pod.DeepCopy()
			report(pod)
			if stored := readiness.StoredReady(old, pod, fixture.Start); stored != nil {
				t.Errorf("stored is %+v", stored)
			}
		})
	}
}

// TestNodeUnreachableRightBehindAnAuxiliary: a pod whose node died right after the first write is replaced like a pod that was not patched
// yet.
func TestNodeUnreachableRightBehindAnAuxiliary(t *testing.T) {
	s, _ := newSideLockstep(t, 4)
	s.pulls(4)
	before := sorted(s.pods.objects)
	s.edit("sets the side's image", fixture.App{Image: "v1", Sidecar: "s2"})
	s.until(s.moved(1))
	dead := slices.IndexFunc(before, func(pod *corev1.Pod) bool {
		now := s.pods.objects[pod.Name]
		return now.Status.ObservedGeneration < now.Generation
	})
	s.goesDown(before[dead].Spec.NodeName)
	s.rest()
	if !s.complete() {
		t.Fatalf("the update does not end: %s", s.describe())
	}
	for _, pod := range sorted(s.pods.objects) {
		if pod.DeletionTimestamp != nil {
			remove(s.world, s.pods, pod.Name) // as the garbage collector does once its node is gone
		}
	}
	s.intact(slices.Delete(before, dead, dead+1))
}

// TestUndoneIsNotDoneBeforeItsContainersAre: an undo gives a pod its old image while it serves. The pod counts as one of the
// update revision all the time. The Deployment controller knows from the ReplicaSet's status alone that the pod restarts.
func TestUndoneIsNotDoneBeforeItsContainersAre(t *testing.T) {
	notReady := func(pod *corev1.Pod) { fixture.Unready(pod) }
	readyFor := func(long time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			apps.Condition(pod, corev1.PodReady).LastTransitionTime = metav1.NewTime(fixture.Start.Add(-long))
		}
	}
	lately := readyFor(5 * time.Second)
	for name, c := range map[string]struct {
		runs             string
		pod              func(*corev1.Pod)
		ready, available int32
		minReadySeconds  int32
		want             bool
	}{
		"the undone one runs still": {"v2", nil, 1, 1, 0, false},
		"they are":                  {"v1", nil, 1, 1, 0, true},
		"not ready, and the ReplicaSet does not know":                     {"v1", notReady, 1, 1, 0, false},
		"not ready, and the ReplicaSet knows":                             {"v1", notReady, 0, 0, 0, true},
		"ready, and the ReplicaSet does not know":                         {"v1", nil, 0, 0, 0, true},
		"ready lately, and the ReplicaSet does not know that it was not":  {"v1", lately, 1, 1, 10, false},
		"ready lately, and the ReplicaSet knows that it is not available": {"v1", lately, 1, 0, 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			r.Deployment.Spec.MinReadySeconds = c.minReadySeconds
			newRS, oldRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
			newRS.Labels[inplace.LabelUpdating], oldRS.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
			newRS.Spec.MinReadySeconds, newRS.Status.ReadyReplicas, newRS.Status.AvailableReplicas = c.minReadySeconds, c.ready, c.available
			pod := fixture.PodOf(r, "p", newRS, c.pod)
			pod.Generation, pod.Status.ObservedGeneration = 3, 3
			pod.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "a", Generation: 3,
				Containers: map[string]readiness.MovedContainer{
					"app": {Image: "v1", ImageID: "sha256:v2", ContainerID: "p/v2", At: metav1.NewTime(fixture.Start)}}}.String()}
			status := &pod.Status.ContainerStatuses[0]
			status.Image, status.ImageID, status.ContainerID = c.runs, "sha256:"+c.runs, "p/"+c.runs
			unmarks := slices.ContainsFunc(r.Plan().Steps, func(step steps.Step) bool {
				patch, is := step.(steps.PatchReplicaSet)
				return is && strings.Contains(patch.Why, "marks")
			})
			if unmarks != c.want {
				t.Errorf("the update is over: %t", unmarks)
			}
		})
	}
}
