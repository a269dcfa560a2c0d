package simulation

import (
	"fmt"
	"maps"
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
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// surging returns a lockstep whose updates may surge, and its pods.
func surging(t *testing.T, replicas int32, change func(*apps.Deployment)) (*lockstep, []*corev1.Pod) {
	s := newLockstep(t, replicas, change)
	s.settings.Surge = inplace.SurgeNeeded
	return s, sorted(s.pods.objects)
}

func surge(unavailable, surge string) func(*apps.Deployment) {
	return func(d *apps.Deployment) {
		d.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.Parse(unavailable))
		d.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.Parse(surge))
		d.Spec.ProgressDeadlineSeconds = new(int32(60))
	}
}

// begin returns the first steps of an update with surge: it creates the surge pods, which have the highest numbers.
func begin(pods ...int) []string {
	planned := []string{"A marks", "B marks", fmt.Sprintf("B 0 → %d, marks", len(pods))}
	for _, pod := range pods {
		planned = append(planned, fmt.Sprintf("%d surge pod", pod))
	}
	return planned
}

func end(replicas int, pods ...int) []string {
	var planned []string
	for _, does := range []string{"%d surge pod to remove", "out %d"} {
		for _, pod := range pods {
			planned = append(planned, fmt.Sprintf(does, pod))
		}
	}
	return append(planned, fmt.Sprintf("B %d → %d", replicas+len(pods), replicas), "A marks", "B marks")
}

func TestStepsOfSurge(t *testing.T) {
	one := func(pod, lower, raise string) []string {
		return []string{"out " + pod, "A " + lower, "move " + pod, "B " + raise}
	}
	for name, c := range map[string]struct {
		replicas int32
		change   func(*apps.Deployment)
		want     [][]string
	}{
		"one replica":  {1, nil, [][]string{begin(2), one("1", "1 → 0", "1 → 2"), end(1, 2)}},
		"two replicas": {2, nil, [][]string{begin(3), one("1", "2 → 1", "1 → 2"), one("2", "1 → 0", "2 → 3"), end(2, 3)}},
		"three replicas": {3, nil, [][]string{begin(4), one("1", "3 → 2", "1 → 2"), one("2", "2 → 1", "2 → 3"),
			one("3", "1 → 0", "3 → 4"), end(3, 4)}},
		"two at a time": {4, surge("0", "2"), [][]string{begin(5, 6),
			// Pod 6 is available a moment after pod 5.
			{"out 1", "A 4 → 3", "out 2", "A 3 → 2", "move 1", "move 2", "B 2 → 4",
				"out 3", "out 4", "A 2 → 0", "move 3", "move 4", "B 4 → 6"},
			{"5 surge pod to remove", "out 5", "B 6 → 5", "B marks", "6 surge pod to remove", "out 6", "B 5 → 4", "A marks", "B marks"}}},
		"no more than restart": {1, surge("0", "3"), [][]string{begin(2), one("1", "1 → 0", "1 → 2"), end(1, 2)}},
	} {
		t.Run(name, func(t *testing.T) {
			s, before := surging(t, c.replicas, c.change)
			s.rules.originals, s.rules.loose = before, false
			s.edit("sets the image", fixture.App{Image: "v2"})
			s.rest()
			s.expect(slices.Concat(c.want...)...)
			s.intact(before)
		})
	}
}

// TestStepsOfReplace: surge pods take the place of the last pods. Nothing else goes, and the other pods stay the same.
func TestStepsOfReplace(t *testing.T) {
	for name, c := range map[string]struct {
		replicas int32
		change   func(*apps.Deployment)
		replaced int32
		want     []string
	}{
		"the only pod": {1, nil, 1, slices.Concat(begin(2),
			[]string{"1 surge pod to remove", "2 stays", "A marks", "B marks", "out 1", "A 1 → 0", "A marks", "B marks"})},
		"one of three": {3, nil, 1, slices.Concat(begin(4),
			[]string{"out 1", "A 3 → 2", "move 1", "B 1 → 2", "out 2", "A 2 → 1", "move 2", "B 2 → 3"},
			[]string{"3 surge pod to remove", "4 stays", "A marks", "B marks", "out 3", "A 1 → 0", "A marks", "B marks"})},
		"two of six, one may be unavailable": {6, surge("1", "2"), 2, []string{"A marks", "B marks", "B 0 → 2, marks",
			"out 1", "A 6 → 5", "7 surge pod", "8 surge pod", "move 1", "B 2 → 3",
			"out 2", "A 5 → 4", "out 3", "A 4 → 3", "move 2", "move 3", "B 3 → 5", "out 4", "A 3 → 2", "move 4", "B 5 → 6",
			"5 surge pod to remove", "6 surge pod to remove", "7 stays", "8 stays", "A marks", "B marks",
			"out 5", "A 2 → 1", "A marks", "out 6", "A 1 → 0", "A marks", "B marks"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, before := surging(t, c.replicas, c.change)
			s.settings.Surge = inplace.SurgeReplace
			s.rules.originals, s.rules.loose = before, false
			s.edit("sets the image", fixture.App{Image: "v2"})
			s.rest()
			s.expect(c.want...)
			s.intact(before[:c.replicas-c.replaced])
			if s.made != int(c.replicas+c.replaced) {
				t.Errorf("%d pods were created", s.made)
			}
		})
	}
}

// TestReplaceWithoutRoom: without room for surge pods, pods restart as they would without them. If there is room for one, a pod that it has
// replaced makes room for the next.
func TestReplaceWithoutRoom(t *testing.T) {
	for name, c := range map[string]struct {
		scarce   func(s *lockstep)
		replaced int
	}{
		"quota for none": {func(s *lockstep) { s.quota = 4 }, 0},
		"quota for one":  {func(s *lockstep) { s.quota = 5 }, 2},
		"no room":        {func(s *lockstep) { s.room = s.placed() }, 0},
		"room for one":   {func(s *lockstep) { s.room = s.placed() + 1 }, 2},
	} {
		for _, unavailable := range []string{"10%", "1"} {
			t.Run(name+", "+unavailable+" unavailable", func(t *testing.T) {
				s, before := surging(t, 4, surge(unavailable, "2"))
				s.settings.Surge = inplace.SurgeReplace
				c.scarce(s)
				s.edit("sets the image", fixture.App{Image: "v2"})
				s.wait(3 * time.Minute)
				s.intact(before[:4-c.replaced])
			})
		}
	}
}

// TestReplaceAndThen: the user edits again, undoes, scales, or Stayput falls back, once a surge pod has taken the place of a pod.
func TestReplaceAndThen(t *testing.T) {
	for name, then := range map[string]func(s *lockstep){
		"edits":      func(s *lockstep) { s.edit("sets another image", fixture.App{Image: "v3"}) },
		"undoes":     func(s *lockstep) { s.edit("undoes", fixture.App{Image: "v1"}) },
		"scales up":  func(s *lockstep) { s.user("scales", func(d *apps.Deployment) { d.Spec.Replicas = new(int32(7)) }) },
		"scales in":  func(s *lockstep) { s.user("scales", func(d *apps.Deployment) { d.Spec.Replicas = new(int32(2)) }) },
		"needs none": func(s *lockstep) { s.settings.Surge = inplace.SurgeNeeded },
		"falls back": func(s *lockstep) { s.mode = inplace.ModeNone },
		"waits":      func(s *lockstep) { s.user("pauses", func(d *apps.Deployment) { d.Spec.Paused = true }) },
	} {
		for steps := range 6 {
			t.Run(fmt.Sprintf("%s after %d steps", name, steps), func(t *testing.T) {
				s, _ := surging(t, 4, surge("1", "2"))
				s.settings.Surge = inplace.SurgeReplace
				s.edit("sets the image", fixture.App{Image: "v2"})
				replacing := func() bool { return slices.Contains(s.steps, "4 surge pod to remove") }
				s.until(replacing)
				before := len(s.steps)
				s.until(func() bool { return len(s.steps) >= before+steps })
				then(s)
				s.rest()
				s.user("resumes", func(d *apps.Deployment) { d.Spec.Paused = false })
				s.rest()
				s.intact(nil)
			})
		}
	}
}

func TestNoSurgePods(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*lockstep)
		edit   fixture.App
	}{
		"for a label":          {func(*lockstep) {}, fixture.App{Image: "v1", Chart: "c2"}},
		"where the label says": {func(s *lockstep) { s.settings.Surge = inplace.SurgeNever }, fixture.App{Image: "v2"}},
		"where one may be unavailable": {func(s *lockstep) {
			s.user("allows it", surge("1", "1"))
		}, fixture.App{Image: "v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, before := surging(t, 3, nil)
			c.change(s)
			s.rest()
			s.edit("edits", c.edit)
			s.rest()
			s.intact(before)
			if s.made != 3 {
				t.Errorf("%d pods were created", s.made-3)
			}
		})
	}
}

func TestBrokenVersionTouchesNoPod(t *testing.T) {
	for _, image := range []string{"bad", "crash"} {
		t.Run(image, func(t *testing.T) {
			s, before := surging(t, 3, surge("25%", "25%"))
			s.edit("sets an image that does not work", fixture.App{Image: image})
			s.until(func() bool { return len(s.steps) == 4 })
			s.expect(begin(4)...)
			s.wait(2 * time.Minute)
			s.expect()
			if plan := s.rollout().Plan(); plan.Phase != steps.PhaseStalled || plan.Progress.Moved != 0 ||
				strings.Contains(plan.Message, "no room for surge") {
				t.Errorf("after the deadline the plan is %+v", plan)
			}
			s.edit("undoes", fixture.App{Image: "v1"})
			s.rest()
			s.expect("4 surge pod to remove", "out 4", "B 1 → 0", "A marks", "B marks")
			s.intact(before)
		})
	}
}

// wait lets time pass in which all processes go on.
func (s *lockstep) wait(d time.Duration) {
	for until := s.now.Add(d); s.now.Before(until); s.now = s.now.Add(time.Second) {
		s.round()
	}
}

func TestNoCapacityForSurge(t *testing.T) {
	scarce := map[string]func(*lockstep){
		"quota":    func(s *lockstep) { s.quota = 2 },
		"capacity": func(s *lockstep) { s.room = s.placed() },
	}
	for name, scarce := range scarce {
		t.Run(name+", a percentage", func(t *testing.T) {
			s, before := surging(t, 2, surge("25%", "25%"))
			scarce(s)
			s.edit("sets the image", fixture.App{Image: "v2"})
			s.wait(30 * time.Second)
			if s.moved(1)() {
				t.Fatalf("a pod was updated before the deadline: %q", s.steps)
			}
			s.wait(2 * time.Minute)
			if !strings.HasPrefix(s.stalled, "no room for surge pods") || !strings.HasSuffix(s.stalled, "; the update goes on without them") {
				t.Errorf("after the deadline it says %q", s.stalled)
			}
			s.intact(before)
		})
		t.Run(name+", explicitly", func(t *testing.T) {
			s, before := surging(t, 2, surge("0", "1"))
			scarce(s)
			s.edit("sets the image", fixture.App{Image: "v2"})
			s.wait(3 * time.Minute)
			if plan := s.rollout().Plan(); s.moved(1)() || plan.Phase != steps.PhaseStalled ||
				!strings.HasPrefix(plan.Message, "no room for surge pods") {
				t.Errorf("after the deadline the plan is %+v, steps %q", plan, s.steps)
			}
			s.quota, s.room = plenty, plenty
			s.wait(time.Minute)
			s.intact(before)
		})
	}
}

// surgePartial stops in the middle of an update: pod 1 is updated, pod 2 restarts.
func surgePartial(t *testing.T, replicas int32, change func(*apps.Deployment)) (*lockstep, []*corev1.Pod) {
	s, before := surging(t, replicas, change)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.until(s.moved(2))
	s.steps = nil
	return s, before
}

func TestUndoWhileSurging(t *testing.T) {
	s, before := surgePartial(t, 3, nil)
	s.edit("undoes", fixture.App{Image: "v1"})
	s.rest()
	// The surge pod goes on serving while pods 2 and 1 go back. Then it is removed from the ReplicaSet that it is in.
	s.expect("move 2", "A 1 → 2", "out 1", "B 2 → 1", "move 1", "A 2 → 3",
		"4 surge pod to remove", "out 4", "B 1 → 0", "A marks", "B marks")
	s.intact(before)
}

func TestEditWhileSurging(t *testing.T) {
	s, before := surgePartial(t, 3, nil)
	s.edit("sets another image", fixture.App{Image: "v3"})
	s.rest()
	s.intact(before)
	if s.made != 4 { // pod 2, which does not serve anyway, proves that the new version works
		t.Errorf("%d surge pods were created", s.made-3)
	}
}

func TestScaleWhileSurging(t *testing.T) {
	for _, replicas := range []int32{0, 1, 2, 4, 9} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			s, before := surgePartial(t, 3, nil)
			s.user("scales", func(d *apps.Deployment) { d.Spec.Replicas = &replicas })
			s.rest()
			if replicas < 3 {
				before = nil
			}
			s.intact(before)
		})
	}
}

func TestPauseWhileSurging(t *testing.T) {
	s, before := surgePartial(t, 3, nil)
	s.user("pauses", func(d *apps.Deployment) { d.Spec.Paused = true })
	s.rest()
	s.expect("B 2 → 3")
	s.user("resumes", func(d *apps.Deployment) { d.Spec.Paused = false })
	s.rest()
	s.intact(before)
}

func TestFallBackWhileSurging(t *testing.T) {
	s, _ := surgePartial(t, 3, nil)
	s.mode = inplace.ModeNone
	s.rest()
	s.intact(nil)
}

func TestNoCapacityForAnotherWhileSurging(t *testing.T) {
	for moved := range 5 {
		t.Run(fmt.Sprintf("%d pods moved", moved), func(t *testing.T) {
			s, before := surging(t, 4, surge("0", "2"))
			s.edit("sets the image", fixture.App{Image: "v2"})
			s.until(func() bool { return s.made == 6 && s.moved(moved)() })
			s.room = s.placed()
			if err := s.terminate(before[0].Name); err != nil {
				t.Fatal(err)
			}
			s.wait(time.Minute)
			s.intact(before[1:])
		})
	}
}

func TestLastSurgePodStaysOut(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v2"})
	r.Seen.Settings.Surge = inplace.SurgeNeeded
	fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 0)
	newRS := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
	newRS.Labels[inplace.LabelUpdating], newRS.Labels[inplace.LabelSurgeReplicas] = fixture.Begun, "1"
	newRS.Status.Replicas = 2
	fixture.PodOf(r, "original", newRS)
	going := fixture.PodOf(r, "extra", newRS, fixture.Out, func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{inplace.AnnotationSurgePod: "true", corev1.PodDeletionCost: readiness.LowestDeletionCost}
	})
	for _, step := range r.Plan().Steps {
		if _, status := step.(steps.PatchStatus); !status {
			t.Errorf("between the lowering of its ReplicaSet and its deletion: %s", step.Describe())
		}
	}
	if !deployments.MayBeDeleted(going) {
		t.Error("its deletion is held")
	}
}

// TestSurgePodServesUntilAnotherDoes: another pod has been moved to a version that does not work. Then an edit comes, and the surge pod
// would be removed. It waits until the other pod serves.
func TestSurgePodServesUntilAnotherDoes(t *testing.T) {
	for name, surger := range map[string]string{"of another ReplicaSet": "b", "of the same": "a"} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v3"})
			r.Seen.Settings.Surge = inplace.SurgeNeeded
			sets := map[string]*apps.ReplicaSet{"a": fixture.ReplicaSetOf(r, "a", fixture.App{Image: "bad"}, 0),
				"b": fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)}
			fixture.ReplicaSetOf(r, "c", fixture.App{Image: "v3"}, 0)
			markAll(r)
			sets[surger].Labels[inplace.LabelSurgeReplicas] = "1"
			fixture.PodOf(r, "original", sets["a"], fixture.Unready)
			fixture.PodOf(r, "extra", sets[surger], func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{inplace.AnnotationSurgePod: "true", corev1.PodDeletionCost: readiness.LowestDeletionCost}
			})
			for _, pod := range r.Seen.Pods {
				owner := r.ReplicaSets[slices.IndexFunc(r.ReplicaSets, func(rs *apps.ReplicaSet) bool { return metav1.IsControlledBy(pod, rs) })]
				*owner.Spec.Replicas++
				owner.Status.Replicas++
			}
			var out []string
			for _, step := range r.Plan().Steps {
				if ready, is := step.(steps.SetReady); is && ready.Out {
					out = append(out, ready.Pod.Name)
				}
			}
			if !slices.Equal(out, []string{"original"}) {
				t.Errorf("%v are taken out of service, want the one that does not serve: steps are %v", out, r.Plan().Steps)
			}
		})
	}
}

// TestSurgePodThatDoesNotServeIsRemovedAfterAnUndo: a surge pod of an update that is undone goes on serving in place of others. If it
// does not serve, it is removed, because it takes the place of one that would.
func TestSurgePodThatDoesNotServeIsRemovedAfterAnUndo(t *testing.T) {
	for name, test := range map[string]struct {
		serves func(*corev1.Pod)
		want   string
	}{
		"it serves":   {func(*corev1.Pod) {}, "out moved"},
		"it does not": {fixture.Unready, "extra surge pod to remove"},
		"it just came": {func(pod *corev1.Pod) {
			pod.Status.Conditions[len(pod.Status.Conditions)-1].LastTransitionTime.Time = fixture.Start
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(2, fixture.App{Image: "v1"})
			r.Seen.Settings.Surge, r.Deployment.Spec.MinReadySeconds = inplace.SurgeNeeded, 60
			newRS, oldRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 2)
			markAll(r)
			oldRS.Labels[inplace.LabelSurgeReplicas] = "1"
			fixture.PodOf(r, "original", newRS)
			fixture.PodOf(r, "moved", oldRS, func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "b"}.String()}
			})
			fixture.PodOf(r, "extra", oldRS, test.serves, func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{inplace.AnnotationSurgePod: "true"}
			})
			var does []string
			for _, step := range r.Plan().Steps {
				switch step := step.(type) {
				case steps.SetReady:
					does = append(does, "out "+step.Pod.Name)
				case steps.PatchPod:
					does = append(does, step.Pod.Name+" "+step.Why)
				}
			}
			if got := strings.Join(does, ", "); got != test.want {
				t.Errorf("the plan is to %q, want %q", got, test.want)
			}
		})
	}
}

// TestReplicasStayLoweredForASurgePod: replicas were lowered for a surge pod that is being removed. They are not raised again, and if its
// kubelet has put the pod back into service meanwhile, it is taken out again: it may not be deleted before.
func TestReplicasStayLoweredForASurgePod(t *testing.T) {
	for name, test := range map[string]struct {
		state func(*corev1.Pod)
		out   []string
	}{
		"it serves again": {func(*corev1.Pod) {}, []string{"extra"}},
		"it is drained":   {fixture.Out, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v2"})
			r.Seen.Settings.Surge = inplace.SurgeNeeded
			fixture.ReplicaSetOf(r, "a", fixture.App{Image: "bad"}, 0)
			newRS := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
			newRS.Status.Replicas, newRS.Status.ReadyReplicas, newRS.Status.AvailableReplicas = 2, 2, 2
			markAll(r)
			newRS.Labels[inplace.LabelSurgeReplicas] = "1"
			fixture.PodOf(r, "original", newRS)
			fixture.PodOf(r, "extra", newRS, test.state, func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{inplace.AnnotationSurgePod: "true", corev1.PodDeletionCost: readiness.LowestDeletionCost}
			})
			plan := r.Plan()
			if out := takesOut(plan); !slices.Equal(out, test.out) || len(resized(plan)) > 0 {
				t.Errorf("%v are taken out of service, want %v: steps are %v", out, test.out, fixture.Brief(plan.Steps))
			}
		})
	}
}

func TestDeletionCostOfATemplateComesBack(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v1"})
	template := r.Deployment.Spec.Template.Typed()
	template.Annotations = map[string]string{corev1.PodDeletionCost: "7"}
	rs := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1)
	if err := fixture.Recode(template, &rs.Spec.Template); err != nil {
		t.Fatal(err)
	}
	r.Deployment.Spec.Template = rs.Spec.Template
	pod := fixture.PodOf(r, "p", rs, func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{inplace.AnnotationSurgePod: "true", corev1.PodDeletionCost: readiness.LowestDeletionCost}
	})
	planned := r.Plan().Steps
	if len(planned) != 1 {
		t.Fatalf("steps are %v", planned)
	}
	patched := pod.DeepCopy()
	if err := fixture.Apply(patched, planned[0].(steps.PatchPod).Operations); err != nil {
		t.Fatal(err)
	}
	if cost := patched.Annotations[corev1.PodDeletionCost]; cost != "7" || patched.Annotations[inplace.AnnotationSurgePod] != "" {
		t.Errorf("annotations are %v", patched.Annotations)
	}
}

func TestAnnounces(t *testing.T) {
	r := fixture.New(3, fixture.App{Image: "v2"})
	r.Deployment.Generation = 4
	for name, c := range map[string]struct {
		observed                     int64
		updated, replicas, available int32
		want                         bool
	}{
		"all done":                   {4, 3, 3, 3, true},
		"with a surge pod":           {4, 4, 4, 4, true},
		"a surge pod and an old one": {4, 3, 4, 4, false},
		"too few updated":            {4, 2, 2, 2, false},
		"one not available":          {4, 4, 4, 3, false},
		"of the edit before":         {3, 3, 3, 3, false},
	} {
		status := appsv1.DeploymentStatus{ObservedGeneration: c.observed, UpdatedReplicas: c.updated, Replicas: c.replicas,
			AvailableReplicas: c.available}
		if got := deployments.LooksComplete(r.Deployment, status); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestNoPodIsASurgePodWhereAllWereMoved: the label notes a surge pod, but another client has scaled it away. So the Deployment has one
// replica too many, like any other.
func TestNoPodIsASurgePodWhereAllWereMoved(t *testing.T) {
	r := fixture.New(3, fixture.App{Image: "v2"})
	r.Seen.Settings.Surge = inplace.SurgeNeeded
	oldRS, newRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 2)
	for _, rs := range []*apps.ReplicaSet{oldRS, newRS} {
		rs.Labels[inplace.LabelUpdating], rs.Status.Replicas = fixture.Begun, 2
	}
	newRS.Labels[inplace.LabelSurgeReplicas] = "1"
	fixture.PodOf(r, "p", oldRS)
	fixture.PodOf(r, "q", oldRS)
	for _, name := range []string{"r", "s"} {
		fixture.PodOf(r, name, newRS, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "b"}.String()}
		})
	}
	if got := fixture.Brief(r.Plan().Steps); got != "status, marks, marks" { // deletions pass for the surplus pod
		t.Errorf("of three pods that are wanted there are four, and the plan is %q", got)
	}
}

// TestServingPodIsNotRemovedForASurgePod: a pod was to be removed in the place of a surge pod, because it did not serve and would
// be deleted first. Now it serves. The ReplicaSet controller would choose it, because it has been Ready for a shorter time. Its deletion is
// held.
func TestServingPodIsNotRemovedForASurgePod(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v2"})
	r.Seen.Settings.Surge = inplace.SurgeNeeded
	fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 0)
	newRS := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
	newRS.Labels[inplace.LabelUpdating], newRS.Status.Replicas = fixture.Begun, 2
	given := map[string]string{inplace.AnnotationSurgePod: "true", corev1.PodDeletionCost: readiness.LowestDeletionCost}
	gone := fixture.PodOf(r, "gone", newRS, fixture.Out, func(pod *corev1.Pod) { pod.Annotations = given })
	moved := fixture.PodOf(r, "moved", newRS, func(pod *corev1.Pod) { pod.Annotations = maps.Clone(given) })
	if !deployments.MayBeDeleted(gone) || deployments.MayBeDeleted(moved) {
		t.Fatal("the pod that is out of service may be deleted, and the one that serves may not")
	}
	var stays []string
	for _, step := range r.Plan().Steps {
		if patch, ok := step.(steps.PatchPod); ok && patch.Why == "stays" {
			stays = append(stays, patch.Pod.Name)
		}
	}
	if !slices.Equal(stays, []string{moved.Name}) {
		t.Errorf("%v stay, not the one that may not be deleted", stays)
	}
}
