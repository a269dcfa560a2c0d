package simulation

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
)

// draining returns a Deployment with a drain whose pods have served for long.
func draining(t *testing.T, replicas int32) *lockstep {
	s := newLockstep(t, replicas, nil)
	s.served()
	s.settings.Drain = 2 * time.Second
	return s
}

// waited returns how long after the previous step a step came.
func (s *lockstep) waited(step string) time.Duration {
	s.t.Helper()
	i := slices.Index(s.steps, step)
	if i < 1 {
		s.t.Fatalf("%q is not among %q", step, s.steps)
	}
	return s.times[i].Sub(s.times[i-1])
}

// roughly compares as exactly as a lockstep can, whose rounds take 20 ms.
func roughly(got, want time.Duration) bool { return got >= want && got < want+200*time.Millisecond }

func TestStepsOfADrain(t *testing.T) {
	s := draining(t, 3)
	before := sorted(s.pods.objects)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	// Replicas are lowered only when the pod may be patched. Until then its old ReplicaSet counts it.
	if !roughly(s.waited("A 3 → 2"), 2*time.Second) || !roughly(s.waited("A 2 → 1"), 2*time.Second) {
		t.Errorf("the drains took %s and %s: %q", s.waited("A 3 → 2"), s.waited("A 2 → 1"), s.steps)
	}
	s.expect("A marks", "B marks", "out 1", "A 3 → 2", "move 1", "B 0 → 1",
		"out 2", "A 2 → 1", "move 2", "B 1 → 2", "out 3", "A 1 → 0", "move 3", "B 2 → 3", "A marks", "B marks")
	s.intact(before)
}

// TestStepsOfTheLastEndpoint: it serves until its containers stop, and gets its identity after the restart.
func TestStepsOfTheLastEndpoint(t *testing.T) {
	s := draining(t, 1)
	before := sorted(s.pods.objects)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.expect("A marks", "B marks", "patch 1", "A 1 → 0", "move 1", "B 0 → 1", "A marks", "B marks")
	s.intact(before)
}

func TestStepsWhereNoClientIsSent(t *testing.T) {
	s := draining(t, 2)
	s.unserved = true
	delete(s.slices.objects, "web-1")
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	if first, second := s.waited("A 2 → 1"), s.waited("A 1 → 0"); first > 200*time.Millisecond || second > 200*time.Millisecond {
		t.Errorf("pods without clients were out of service for %s and %s before they restarted", first, second)
	}
	s.expect("A marks", "B marks", "out 1", "A 2 → 1", "move 1", "B 0 → 1",
		"out 2", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
}

// TestPreStopCounts asks when a pod of two containers that was just taken out of service may be patched.
func TestPreStopCounts(t *testing.T) {
	sleep := func(seconds int64) *corev1.Lifecycle {
		return &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}}}
	}
	exec := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sleep", "9"}}}}
	for name, c := range map[string]struct {
		app, proxy *corev1.Lifecycle
		both       bool
		grace      int64
		left       time.Duration
	}{
		"no hook":                   {grace: 30, left: 5 * time.Second},
		"it sleeps a part":          {app: sleep(2), grace: 30, left: 3 * time.Second},
		"it sleeps longer":          {app: sleep(8), grace: 30},
		"it sleeps just as long":    {app: sleep(5), grace: 30},
		"killed before":             {app: sleep(8), grace: 1, left: 4 * time.Second},
		"a command":                 {app: exec, grace: 30, left: 5 * time.Second},
		"one of two does":           {app: sleep(8), both: true, grace: 30, left: 5 * time.Second},
		"both do":                   {app: sleep(8), proxy: sleep(3), both: true, grace: 30, left: 2 * time.Second},
		"only the one that runs on": {proxy: sleep(8), grace: 30, left: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r, drain := fixture.New(1, fixture.App{Image: "v1"}), 5*time.Second
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.Out)
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "proxy", Image: "p1"})
			pod.Spec.Containers[0].Lifecycle, pod.Spec.Containers[1].Lifecycle = c.app, c.proxy
			pod.Spec.TerminationGracePeriodSeconds = new(c.grace)
			s := podstate.State{Work: podstate.Work{MarkedPod: podstate.MarkedPod{Pod: pod}, Containers: fixture.Reimaged("app", "v2").Containers}}
			if c.both {
				s.Containers = append(s.Containers, fixture.Reimaged("proxy", "p2").Containers...)
			}
			endpoints := podstate.Endpoints{pod.UID: {OutSince: fixture.Start}}
			if over, left := s.Drained(endpoints, drain, fixture.Start); over != (c.left == 0) || left != c.left {
				t.Errorf("drained %t, looks again in %s; want %s", over, left, c.left)
			}
			if !c.both {
				side := pod.Spec.Containers[0]
				side.Name, side.RestartPolicy = "mesh", new(corev1.ContainerRestartPolicyAlways)
				pod.Spec.InitContainers, s.Containers = []corev1.Container{side}, fixture.Reimaged("mesh", "m2").Containers
				if over, left := s.Drained(endpoints, drain, fixture.Start); over != (c.left == 0) || left != c.left {
					t.Errorf("a sidecar: drained %t, looks again in %s; want %s", over, left, c.left)
				}
			}
			s.Removing = true
			if over, _ := s.Drained(endpoints, drain, fixture.Start); over {
				t.Error("a surge pod is deleted before its drain is over")
			}
		})
	}
}

func TestStepsOfASliceThatDoesNotFollow(t *testing.T) {
	s := draining(t, 2)
	s.endpointsController.away = true
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.expect("A marks", "B marks", "out 1")
	s.now = s.now.Add(podstate.DrainPatience + s.settings.Drain)
	s.until(func() bool { return slices.Contains(s.steps, "move 1") })
	s.expect("A 2 → 1", "move 1")
}

func TestStepsOfPauseWhileDraining(t *testing.T) {
	s := draining(t, 3)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.until(func() bool { return slices.Contains(s.steps, "out 1") })
	s.user("pauses", func(d *apps.Deployment) { d.Spec.Paused = true })
	s.until(func() bool { return slices.Contains(s.steps, "back 1") })
	s.expect("A marks", "B marks", "out 1", "back 1")
	s.user("resumes", func(d *apps.Deployment) { d.Spec.Paused = false })
	s.until(func() bool { return slices.Contains(s.steps, "A 3 → 2") })
	if !roughly(s.waited("A 3 → 2"), 2*time.Second) {
		t.Errorf("the second drain took %s", s.waited("A 3 → 2"))
	}
}

func TestStepsOfALabelDoNotDrain(t *testing.T) {
	s := draining(t, 2)
	s.edit("sets a label", fixture.App{Image: "v1", Chart: "c2"})
	s.rest()
	if took := s.times[len(s.times)-1].Sub(s.times[0]); took > time.Second {
		t.Errorf("an edit of labels took %s", took)
	}
	s.expect("A marks", "B marks", "A 2 → 1", "move 1", "B 0 → 1", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
}

func TestPlanLooksAgainWhenADrainEnds(t *testing.T) {
	r := fixture.New(2, fixture.App{Image: "v2"})
	oldRS, newRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
	oldRS.Labels[inplace.LabelUpdating], newRS.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
	r.Seen.Settings.Drain = 2 * time.Second
	pod := fixture.PodOf(r, "p", oldRS, fixture.OutSince(fixture.Start.Add(-time.Second)))
	fixture.PodOf(r, "q", oldRS)
	for name, c := range map[string]struct {
		endpoint podstate.Endpoint
		after    time.Duration
	}{
		"when the drain ends":  {podstate.Endpoint{OutSince: fixture.Start.Add(-500 * time.Millisecond)}, 1500 * time.Millisecond},
		"when the bound ends":  {podstate.Endpoint{Listed: true}, 31 * time.Second},
		"to see whether it is": {podstate.Endpoint{}, inplace.LookAgain},
	} {
		r.Seen.Endpoints = podstate.Endpoints{pod.UID: c.endpoint}
		if plan := r.Plan(); plan.After != c.after || len(resized(plan)) > 0 {
			t.Errorf("%s: looks again after %s, and %v", name, plan.After, plan.Steps)
		}
	}
}

func TestDaemonStepsOfADrain(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Seen.Settings.Drain = 2 * time.Second
	f.Edit(fixture.App{Image: "v2"})
	f.Once()
	f.Once()
	f.Expect("mark 2 true false", "out p1")
	outAt, untilRenewal := f.Seen.Now, revisions.RenewEvery-6*time.Second
	out := func(e podstate.Endpoint) podstate.Endpoints { return podstate.Endpoints{f.Seen.Pods[0].UID: e} }
	for _, step := range []struct {
		endpoint podstate.Endpoint
		after    time.Duration
		want     []string
	}{
		{podstate.Endpoint{Listed: true}, 31 * time.Second, nil},
		{podstate.Endpoint{}, inplace.LookAgain, nil},
		{podstate.Endpoint{OutSince: outAt.Add(3 * time.Second)}, 2 * time.Second, nil},
		{podstate.Endpoint{OutSince: outAt.Add(3 * time.Second)}, time.Second, nil},
		{podstate.Endpoint{OutSince: outAt.Add(3 * time.Second)}, untilRenewal, []string{"p1 is 2 app=v2"}},
	} {
		f.Seen.Endpoints = out(step.endpoint)
		if plan := f.Once(); plan.After != step.after {
			t.Errorf("%+v: looks again after %s, want %s", step.endpoint, plan.After, step.after)
		}
		f.Expect(step.want...)
	}
	f.Once()
	f.Once()
	f.Expect("out p2")
	f.Seen.Endpoints = podstate.Endpoints{f.Seen.Pods[1].UID: {Listed: true, LastOf: "agent"}} // by now
	f.Once()
	f.Expect("p2 is 2 app=v2")
}

func TestDaemonLabelsAndLastEndpointsDoNotDrain(t *testing.T) {
	f := fixture.NewFleet(t, 1)
	f.Seen.Settings.Drain = 2 * time.Second
	f.Edit(fixture.App{Image: "v1", Chart: "c2"})
	f.Rest()
	f.Expect("mark 2 true false", "p1 is 2 app=v1", "mark 2 false false")
	f = fixture.NewFleet(t, 1)
	f.Seen.Settings.Drain = 2 * time.Second
	f.Seen.Endpoints = podstate.Endpoints{f.Seen.Pods[0].UID: {Listed: true, LastOf: "agent"}}
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.Expect("mark 2 true false", "p1 is updating-in-place app=v2", "p1 is 2 app=v2", "mark 2 false false")
}
