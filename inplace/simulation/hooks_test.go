package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// hookedLockstep returns a Deployment of two pods with the hook, and its registrar, which acts when it is told to.
func hookedLockstep(t *testing.T, change func(*apps.Deployment)) (*lockstep, []*corev1.Pod) {
	s := newLockstep(t, 2, change)
	s.hooked(10 * time.Minute)
	s.runHooks()
	s.rest()
	return s, sorted(s.pods.objects)
}

// heldByHook lets all processes but the registrar act until a hook holds the first pod.
func (s *lockstep) heldByHook() {
	s.t.Helper()
	s.rest()
	s.expect("A marks", "B marks", "out 1")
}

func TestStepsOfAHook(t *testing.T) {
	s, before := hookedLockstep(t, nil)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.heldByHook()
	if plan := s.rollout().Plan(); !strings.Contains(plan.Message, "waiting for annotation "+hook+" to be removed from pod web-") ||
		len(plan.WaitsFor(steps.FilterHooks)) != 1 {
		t.Errorf("the plan says %q, and %+v", plan.Message, plan.Waits)
	}
	r := s.rollout()
	if progress := r.PodProgress()[0]; progress.Phase != podstate.Updating ||
		!strings.HasPrefix(progress.Awaits, "annotation "+hook+" to be removed, for ") {
		t.Errorf("pod 1 waits for %q", progress.Awaits)
	}
	s.runHooks()
	s.rest()
	s.expect("A 2 → 1", "move 1", "B 0 → 1", "out 2") // the first pod waits for no hook before it serves again
	s.runHooks()
	s.rest()
	s.expect("A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
	s.intact(before)
}

func TestStepsAfterAHookTimesOut(t *testing.T) {
	s, before := hookedLockstep(t, nil)
	s.registrar.dead = true
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.heldByHook()
	out := readiness.OutAt(s.pods.objects[before[0].Name])
	var told []string
	for end := out.Add(10*time.Minute - time.Second); s.now.Before(end); s.now = s.now.Add(10 * time.Second) {
		s.round()
		r := s.rollout()
		for _, wait := range r.Plan().Waits {
			told = append(told, wait.String())
		}
	}
	s.until(s.moved(1))
	if waited := s.times[slices.Index(s.steps, "A 2 → 1")].Sub(out); waited < 10*time.Minute || waited > 10*time.Minute+20*time.Second {
		t.Errorf("the hook held the pod for %s: %q", waited, s.steps)
	}
	if len(told) == 0 || told[0] != "waiting for annotation "+hook+" to be removed from pod "+before[0].Name {
		t.Errorf("told %q", told)
	}
}

func TestHookMidUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		does func(*lockstep)
		want []string
	}{
		"undo": {func(s *lockstep) { s.edit("undoes", fixture.App{Image: "v1"}) }, []string{"back 1", "A marks", "B marks"}},
		"pause": {func(s *lockstep) {
			s.user("pauses", func(d *apps.Deployment) { d.Spec.Paused = true })
		}, []string{"back 1"}},
		"scaled down": {func(s *lockstep) {
			s.user("scales", func(d *apps.Deployment) { d.Spec.Replicas = new(int32(1)) })
		}, []string{"A marks", "annotations", "B marks", "A 2 → 1", "A marks", "B marks", "out 2"}},
		"the hook is no longer named": {func(s *lockstep) {
			s.user("forgets", func(d *apps.Deployment) { delete(d.Annotations, inplace.AnnotationPreRestartHooks) })
		}, []string{"A 2 → 1", "move 1", "B 0 → 1", "out 2", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks"}},
		"no hook is waited for": {func(s *lockstep) { s.settings.PreRestartTimeout = 0 },
			[]string{"A 2 → 1", "move 1", "B 0 → 1", "out 2", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := hookedLockstep(t, nil)
			s.edit("sets the image", fixture.App{Image: "v2"})
			s.heldByHook()
			c.does(s)
			s.rest()
			if got := strings.Join(s.steps, ", "); !strings.HasPrefix(got, strings.Join(c.want, ", ")) {
				t.Errorf("steps %q, want %q first", got, c.want)
			}
		})
	}
}

// TestHookDoesNotHoldTheDeadline: natively nothing waits for another controller, so the time that it takes is no lack of progress.
func TestHookDoesNotHoldTheDeadline(t *testing.T) {
	s, _ := hookedLockstep(t, impatient)
	s.edit("sets the image", fixture.App{Image: "v2"})
	if after := s.overdueAfter(5 * time.Minute); after != 0 {
		t.Errorf("the deadline passed after %s: %q", after, s.steps)
	}
	s.expect("A marks", "B marks", "out 1")
}

// TestForgedConditionHoldsNothing: a pod that another client has taken out of service with a time in the future is not held.
func TestForgedConditionHoldsNothing(t *testing.T) {
	for ahead, held := range map[time.Duration]bool{-time.Minute: true, 10 * time.Second: true, time.Minute: false, 1000 * time.Hour: false} {
		s, _ := hookedLockstep(t, nil)
		s.edit("sets the image", fixture.App{Image: "v2"})
		s.heldByHook()
		r := s.rollout()
		apps.Condition(r.Seen.Pods[0], corev1.PodReady).LastTransitionTime.Time = s.now.Add(ahead)
		r.Seen.Endpoints = s.ask(&s.stayput.remembered, r.Seen.Pods)
		if plan := r.Plan(); len(plan.Waits) > 0 != held {
			t.Errorf("out in %s: %+v, want it held: %t", ahead, plan.Waits, held)
		}
	}
}

// TestHookOfTheLastEndpoint: such a pod is taken out of service, because its Ready tells the other controller.
func TestHookOfTheLastEndpoint(t *testing.T) {
	s := lastEndpoint(t, nil)
	s.hooked(10 * time.Minute)
	s.runHooks()
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.expect("A marks", "B marks", "out 1")
}

// TestHooksWithoutATurn: a pod that does not restart waits for no hook.
func TestHooksWithoutATurn(t *testing.T) {
	s, _ := hookedLockstep(t, nil)
	s.edit("sets a label", fixture.App{Image: "v1", Chart: "c2"})
	s.rest()
	s.expect("A marks", "B marks", "A 2 → 1", "move 1", "B 0 → 1", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
}

func TestDaemonStepsOfAHook(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	hookPods(&f.DaemonSet.Annotations, f.Seen.Pods)
	f.Seen.Settings.PreRestartTimeout = time.Minute
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.Expect("mark 2 true false", "out p1")
	delete(f.Seen.Pods[0].Annotations, hook)
	f.Rest()
	f.Expect("p1 is 2 app=v2", "out p2")
	if plan := f.Plan(); plan.After > time.Minute || len(plan.Waits) != 1 {
		t.Errorf("looks again after %s, %+v", plan.After, plan.Waits)
	}
	f.Seen.Now = f.Seen.Now.Add(time.Minute)
	timedOut := func(step steps.Step) bool {
		patch, is := step.(steps.PatchPod)
		return is && patch.TimedOut == "pod p2 goes on with annotation "+hook+": not removed within 1m0s"
	}
	if plan := f.Plan(); !slices.ContainsFunc(plan.Steps, timedOut) {
		t.Errorf("%+v", plan.Steps)
	}
	f.Rest()
	f.Expect("mark 2 true false", "p2 is 2 app=v2", "mark 2 false false")
}

func hookPods(workload *map[string]string, pods []*corev1.Pod) {
	*workload = map[string]string{inplace.AnnotationPreRestartHooks: "lb"}
	for _, pod := range pods {
		pod.Annotations = map[string]string{hook: "web", fixture.NoteKey: "n1"}
	}
}

// TestStatefulSetStepsOfAHook: with either policy, pods are out of service before they restart, and hooks hold them.
func TestStatefulSetStepsOfAHook(t *testing.T) {
	for _, policy := range []appsv1.PodManagementPolicyType{appsv1.ParallelPodManagement, appsv1.OrderedReadyPodManagement} {
		m := fixture.NewMembers(t, 2)
		m.StatefulSet.Spec.PodManagementPolicy = policy
		hookPods(&m.StatefulSet.Annotations, m.Fleet.Seen.Pods)
		m.Rollout.Seen.Settings.PreRestartTimeout = time.Minute
		before := m.StatefulSet.Spec.Template
		m.Edit(fixture.App{Image: "v2"})
		about := "pre-restart hooks lb: a pod that is out of service restarts when their annotations"
		if told := m.Of().DecideEdit(before).Hooks; !strings.HasPrefix(told, about) {
			t.Errorf("%s: users are told %q", policy, told)
		}
		m.Rest()
		if first := strings.Join(m.Steps, ", "); strings.Contains(first, "db-0") {
			t.Errorf("%s: %s", policy, first)
		}
	}
}

// TestHookSimulation is TestSimulation with a hook, whose controller may be fickle, and may die. No containers of a drained pod stop while
// the hook holds it. In the end the update completes, whatever the controller does.
func TestHookSimulation(t *testing.T) {
	runSeeds(t, func(seed int64, tracing bool) outcome {
		w := newWorld(t, seed, tracing)
		w.pull.Parallel, w.kubelet.skew = int(seed%3), skewOf(seed)
		w.calm()
		r := w.hooked([]time.Duration{0, time.Second, 5 * time.Second}[w.rng.Intn(3)])
		r.fickle = w.rng.Intn(4) == 0
		w.rules.loose, w.rules.originals = w.rng.Intn(3) == 0, sorted(w.pods.objects)
		w.logf("loose %v, strategy %+v", w.rules.loose, w.deployment().Spec.Strategy)
		for range 100 + w.rng.Intn(500) {
			if w.failed == "" {
				w.tick(3)
			}
		}
		r.fickle, r.dead = false, w.rng.Intn(2) == 0
		w.finish()
		return outcome{w.failed, w.describe(), w.trace}
	})
}
