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
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// lockstep is a world whose caches do not lag, and whose processes act in turn. It records the steps of Stayput in order.
type lockstep struct {
	*world
	names map[string]string
	steps []string
	// times are those of the steps.
	times []time.Time
	// stalled is the message of the plan when the deadline had passed.
	stalled string
}

// newLockstep returns a Deployment of that many pods, natively rolled out and at rest. No Service selects them. Its ReplicaSets are called
// A, B … in the order in which they are created, its pods 1, 2 …
func newLockstep(t *testing.T, replicas int32, change func(*apps.Deployment)) *lockstep {
	w := newWorld(t, 1, true)
	w.rules.loose, w.settings, w.unserved, w.claim, w.kubelet.hasty = true, inplace.Settings{}, true, "", false
	d := fixture.NewDeployment(replicas, fixture.App{Image: "v1"})
	if change != nil {
		change(d)
	}
	w.deployments.objects = map[string]*apps.Deployment{}
	put(w, w.deployments, d)
	s := &lockstep{world: w, names: map[string]string{}}
	s.rest()
	s.steps, s.times = nil, nil
	return s
}

// lastEndpoint returns a Deployment of one pod, which is the only endpoint of its Service. So the pod serves until its containers stop.
func lastEndpoint(t *testing.T, change func(*apps.Deployment)) *lockstep {
	s := newLockstep(t, 1, change)
	s.served()
	return s
}

// served creates a Service that selects the pods.
func (s *lockstep) served() {
	s.unserved = false
	s.rest()
}

// rest lets all processes act, without delay and in the same order, until nothing changes.
func (s *lockstep) rest() { s.until(func() bool { return false }) }

// until fails if something still changes after an hour: it would never end.
func (s *lockstep) until(done func() bool) {
	end := s.now.Add(time.Hour)
	for quiet := 0; quiet < 200 && !done(); s.now = s.now.Add(20 * time.Millisecond) {
		if s.now.After(end) {
			s.t.Fatalf("does not come to rest: %s", s.describe())
		}
		before := s.version
		s.round()
		if quiet++; s.version != before {
			quiet = 0
		}
	}
	s.check()
	if s.failed != "" {
		s.t.Fatal(s.failed)
	}
}

func (s *lockstep) round() {
	if s.stayput.running {
		s.stayput.lease = s.now.Add(leaseDuration)
	}
	s.syncDeployment()
	if s.deploymentController.(*deploymentController).outdated { // it tries again within 10 ms
		s.syncDeployment()
	}
	for _, name := range slices.Sorted(maps.Keys(s.sets.objects)) {
		s.syncReplicaSet(name)
	}
	s.kubelet.pods.advance(1000)
	for _, pod := range s.kubelet.pods.list() {
		s.kubelet.run(pod.Name)
	}
	s.endpointsController.pods.advance(1000)
	s.endpointsController.run()
	s.runPrePullPods()
	s.plan()
}

func (s *lockstep) syncDeployment() {
	for watch := range 3 {
		s.deploymentController.deliver(watch, 1000)
		s.replicaSetController.deliver(watch, 1000)
	}
	s.deploymentController.resync()
	s.deploymentController.run()
}

// syncReplicaSet has the model of the ReplicaSet controller act at once.
func (s *lockstep) syncReplicaSet(name string) {
	controller := s.replicaSetController.(*replicaSetController)
	if err := controller.sync(name, controller.of(name)); err != nil {
		s.t.Fatal(err)
	}
}

// pass lets time pass in which only Stayput acts, when it asked to look again.
func (s *lockstep) pass(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); s.plan() {
		s.now = s.now.Add(revisions.RenewEvery / 2)
		s.stayput.lease = s.now.Add(leaseDuration)
	}
}

// plan carries out one plan and notes its steps, except the status.
func (s *lockstep) plan() {
	if !s.stayput.running {
		return
	}
	r := s.rollout()
	s.stayput.remembered.Observe(r.Seen.Pods, s.now)
	r.Seen.Endpoints, r.Seen.TakenOut = s.ask(&s.stayput.remembered, r.Seen.Pods), s.stayput.remembered.TakenOut
	plan := s.planned(&r)
	s.addsUp(plan)
	s.respectsPartition(r, plan)
	if plan.Phase == steps.PhaseStalled && s.stalled == "" {
		s.stalled = plan.Message
	}
	for _, step := range plan.Steps {
		s.note(step)
		if patch, ok := step.(steps.PatchPod); ok {
			s.rules.last[patch.Pod.Name] = r.Seen.Endpoints[patch.Pod.UID].LastOf != "" || othersLeave(plan.Steps, r.Seen.Pods, patch.Pod)
		}
		for len(s.times) < len(s.steps) {
			s.times = append(s.times, s.now)
		}
		if err := s.carryOut(step); err != nil {
			s.t.Fatalf("%s: %v", step.Describe(), err)
		}
		s.stayput.remembered.Made(step, s.now)
	}
}

func (s *lockstep) note(step steps.Step) {
	switch step := step.(type) {
	case steps.PatchStatus:
	case steps.SetReady:
		s.steps = append(s.steps, fmt.Sprintf("%s %s", map[bool]string{true: "out", false: "back"}[step.Out], s.short(step.Pod)))
	case steps.PatchPod:
		if slices.Contains([]string{"surge pod", "surge pod to remove", "stays"}, step.Why) {
			s.steps = append(s.steps, s.short(step.Pod)+" "+step.Why)
			return
		}
		if strings.HasPrefix(step.Why, "its volumes") {
			s.steps = append(s.steps, "renew "+s.short(step.Pod))
			return
		}
		if step.Resizes {
			s.steps = append(s.steps, "resize "+s.short(step.Pod))
			return
		}
		s.steps = append(s.steps, fmt.Sprintf("%s %s", map[bool]string{true: "move", false: "patch"}[step.Moves], s.short(step.Pod)))
	case steps.PatchReplicaSet:
		why := strings.TrimSuffix(strings.TrimSuffix(strings.ReplaceAll(step.Why, "replicas ", ""), "renewed"), ", ")
		if why != "" { // renewals are for TestRenewal to check
			s.steps = append(s.steps, s.shortSet(step.ReplicaSet.Name)+" "+why)
		}
	case steps.CreatePrePullPod:
		s.steps = append(s.steps, "pull "+step.Pod.Spec.NodeName)
	case steps.DeletePrePullPod:
		s.steps = append(s.steps, "drop "+step.Pod.Spec.NodeName)
	case steps.CreateReplicaSet:
		s.steps = append(s.steps, "create")
	}
}

// short returns the pod's number.
func (s *lockstep) short(pod *corev1.Pod) string {
	if s.names[pod.Name] == "" {
		all := sorted(s.pods.objects)
		slices.SortFunc(all, func(a, b *corev1.Pod) int { return strings.Compare(a.Name[len(a.Name)-3:], b.Name[len(b.Name)-3:]) })
		for i, each := range all {
			s.names[each.Name] = fmt.Sprint(i + 1)
		}
	}
	return s.names[pod.Name]
}

// shortSet returns the ReplicaSet's letter.
func (s *lockstep) shortSet(name string) string {
	for i, rs := range s.rollout().OldestFirst() {
		if rs.Name == name {
			return string(rune('A' + i))
		}
	}
	return name
}

func (s *lockstep) edit(does string, a fixture.App) {
	s.user(does, func(d *apps.Deployment) { d.Spec.Template = a.Template() })
}

// expect compares the steps so far, and forgets them.
func (s *lockstep) expect(want ...string) {
	s.t.Helper()
	if !slices.Equal(s.steps, want) {
		s.t.Errorf("steps are\n\t%s\nnot\n\t%s", strings.Join(s.steps, "\n\t"), strings.Join(want, "\n\t"))
	}
	s.steps, s.times = nil, nil
}

// moved returns a condition for until: n pods have been patched or moved.
func (s *lockstep) moved(n int) func() bool {
	return func() bool {
		count := 0
		for _, step := range s.steps {
			if strings.HasPrefix(step, "move") || strings.HasPrefix(step, "patch") {
				count++
			}
		}
		return count >= n
	}
}

// intact demands that the pods are those before, all of them updated and serving.
func (s *lockstep) intact(before []*corev1.Pod) {
	s.t.Helper()
	s.world.rules.loose = true
	s.checkEnd()
	if s.failed != "" {
		s.t.Error(s.failed)
	}
	for _, pod := range before {
		if s.pods.objects[pod.Name] == nil {
			s.t.Errorf("pod %s is gone", pod.Name)
		}
	}
}

func TestStepsOfAnImage(t *testing.T) {
	s := newLockstep(t, 3, nil)
	before := sorted(s.pods.objects)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	one := func(pod, lower, raise string) []string {
		return []string{"A " + lower, "move " + pod, "B " + raise}
	}
	want := []string{"A marks", "B marks", "out 1"}
	want = append(want, one("1", "3 → 2", "0 → 1")...)
	want = append(append(want, "out 2"), one("2", "2 → 1", "1 → 2")...)
	want = append(append(want, "out 3"), "A 1 → 0", "move 3", "B 2 → 3", "A marks", "B marks")
	s.expect(want...)
	s.intact(before)
}

func TestStepsOfALabel(t *testing.T) {
	s := newLockstep(t, 2, nil)
	before := sorted(s.pods.objects)
	s.edit("sets a label", fixture.App{Image: "v1", Chart: "c2"})
	s.rest()
	s.expect("A marks", "B marks", "A 2 → 1", "move 1", "B 0 → 1", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
	s.intact(before)
	for _, pod := range before {
		if c := s.kubelet.state[pod.Name]["app"]; c.id != pod.Status.ContainerStatuses[0].ContainerID {
			t.Errorf("%s restarted", pod.Name)
		}
		if now := s.pods.objects[pod.Name]; now.Labels["chart"] != "c2" {
			t.Errorf("%s has labels %v", pod.Name, now.Labels)
		}
	}
}

// goesDown stops the kubelet of a node. The node controller sets its pods to not Ready (MarkPodsNotReady in
// pkg/controller/util/node/controller_utils.go).
func (w *world) goesDown(node string) {
	readiness.NodesByName(w.pull.Nodes)[node].Status.Conditions[0].Status = corev1.ConditionUnknown
	for _, pod := range sorted(w.pods.objects) {
		if pod.Spec.NodeName != node {
			continue
		}
		if _, err := alter(w, w.pods, pod.Name, "",
			func(pod *corev1.Pod) { apps.Condition(pod, corev1.PodReady).Status = corev1.ConditionFalse }); err != nil {
			w.violated("node down: %v", err)
		}
	}
}

func TestStepsWithAnUnreachableNode(t *testing.T) {
	s := newLockstep(t, 4, nil)
	s.pulls(4)
	before := sorted(s.pods.objects)
	s.goesDown("n2")
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.expect("pull n1", "pull n3", "pull n4", "A 4 → 3", "A 3 → 4", "A marks", "B marks",
		"out 1", "A 4 → 3", "move 1", "B 0 → 1", "drop n1",
		"out 3", "A 3 → 2", "move 3", "B 1 → 2",
		"out 4", "A 2 → 1", "move 4", "B 2 → 3", "drop n4",
		"out 5", "A 1 → 0", "move 5", "B 3 → 4", "A marks", "B marks", "drop n3")
	for _, pod := range sorted(s.pods.objects) {
		if pod.DeletionTimestamp != nil {
			remove(s.world, s.pods, pod.Name) // as the garbage collector does once its node is gone
		}
	}
	s.intact(slices.DeleteFunc(before, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "n2" }))
}

func TestNodeUnreachableMidUpdate(t *testing.T) {
	s := newLockstep(t, 4, nil)
	s.pulls(4)
	before := sorted(s.pods.objects)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.until(s.moved(1))
	s.goesDown("n4")
	s.rest()
	for _, pod := range before {
		if pod.Spec.NodeName == "n4" {
			remove(s.world, s.pods, pod.Name)
		}
	}
	s.intact(slices.DeleteFunc(before, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "n4" }))
}

// TestUnreachablePodsThatAreReplaced: all of them, if other nodes have room. In an outage no more are deleted than natively: maxSurge and
// maxUnavailable together. With strategy Recreate none is, because it may still run.
func TestUnreachablePodsThatAreReplaced(t *testing.T) {
	recreate := func(d *apps.Deployment) {
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	for name, test := range map[string]struct {
		replicas int32
		change   func(*apps.Deployment)
		down     []string
		room     int
		deleted  int
	}{
		"three nodes of four": {4, nil, []string{"n2", "n3", "n4"}, plenty, 3},
		"outage":              {8, nil, []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"}, 8, 4},
		"Recreate":            {1, recreate, []string{"n1"}, plenty, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLockstep(t, test.replicas, test.change)
			s.pulls(4)
			before := sorted(s.pods.objects)
			s.room = test.room
			for _, node := range test.down {
				s.goesDown(node)
			}
			s.edit("sets the image", fixture.App{Image: "v2"})
			s.rest()
			deleted := 0
			for _, pod := range before {
				if now := s.pods.objects[pod.Name]; now == nil || now.DeletionTimestamp != nil {
					deleted++
				}
			}
			if deleted != test.deleted {
				t.Errorf("%d pods were deleted, not %d", deleted, test.deleted)
			}
		})
	}
}

func TestStepsOfRecreate(t *testing.T) {
	s := newLockstep(t, 1, func(d *apps.Deployment) {
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	})
	before := sorted(s.pods.objects)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.expect("create", "A marks", "B marks", "out 1", "A 1 → 0", "move 1", "B 0 → 1", "A marks", "B marks")
	s.intact(before)
}

// partial stops in the middle of an update: pod 1 is updated, pod 2 restarts, pod 3 is untouched.
func partial(t *testing.T) (*lockstep, []*corev1.Pod) {
	s := newLockstep(t, 3, nil)
	before := sorted(s.pods.objects)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.until(s.moved(2))
	s.steps = nil
	return s, before
}

func TestStepsOfUndoMidUpdate(t *testing.T) {
	s, before := partial(t)
	s.edit("undoes", fixture.App{Image: "v1"})
	s.rest()
	// Pod 2 goes back before the new ReplicaSet could count it, because its container was about to stop already. Pod 1 goes back when pod 2
	// serves again.
	s.expect("move 2", "A 1 → 2", "out 1", "B 1 → 0", "move 1", "A 2 → 3", "A marks", "B marks")
	s.intact(before)
}

func TestStepsOfPauseMidUpdate(t *testing.T) {
	s, before := partial(t)
	s.user("pauses", func(d *apps.Deployment) { d.Spec.Paused = true })
	s.rest()
	s.expect("B 1 → 2")
	if plan := s.rollout().Plan(); plan.Phase != steps.PhasePaused || plan.Progress.Moved != 2 || len(plan.Steps) > 0 {
		t.Errorf("while paused the plan is %+v", plan)
	}
	s.user("resumes", func(d *apps.Deployment) { d.Spec.Paused = false })
	s.rest()
	s.expect("out 3", "A 1 → 0", "move 3", "B 2 → 3", "A marks", "B marks")
	s.intact(before)
}

func TestStepsOfPauseBeforeAPodWasPatched(t *testing.T) {
	s := newLockstep(t, 3, nil)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.until(func() bool { return slices.Contains(s.steps, "A 3 → 2") })
	s.user("pauses", func(d *apps.Deployment) { d.Spec.Paused = true })
	s.steps = nil
	s.rest()
	s.expect("back 1", "A 2 → 3")
}

func TestStepsOfScalingMidUpdate(t *testing.T) {
	s, before := partial(t)
	s.user("scales up", func(d *apps.Deployment) { d.Spec.Replicas = new(int32(6)) })
	s.until(func() bool { return len(s.pods.objects) == 6 })
	s.rest()
	s.intact(before)

	s.edit("sets the image", fixture.App{Image: "v3"})
	s.until(s.moved(4))
	s.user("scales down", func(d *apps.Deployment) { d.Spec.Replicas = new(int32(2)) })
	s.rest()
	s.intact(nil)
}

func TestStepsOfABadImageAndItsUndo(t *testing.T) {
	s := newLockstep(t, 3, func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = new(int32(60)) })
	before := sorted(s.pods.objects)
	s.edit("sets an image that does not exist", fixture.App{Image: "bad"})
	s.rest()
	s.expect("A marks", "B marks", "out 1", "A 3 → 2", "move 1", "B 0 → 1")
	s.pass(2 * time.Minute)
	s.rest()
	if plan := s.rollout().Plan(); plan.Phase != steps.PhaseStalled || plan.Progress.Moved != 0 || plan.Progress.Moving != 1 {
		t.Errorf("after the deadline the plan is %+v", plan)
	}
	if progressing := apps.DeploymentCondition(s.deployment().Status,
		appsv1.DeploymentProgressing); progressing.Reason != deployments.ReasonTimedOut {
		t.Errorf("Progressing is %+v", progressing)
	}
	s.edit("undoes", fixture.App{Image: "v1"})
	s.rest()
	s.expect("out 1", "B 1 → 0", "move 1", "A 2 → 3", "A marks", "B marks")
	s.intact(before)
}

func TestStepsOfTwoContainers(t *testing.T) {
	s := newLockstep(t, 1, func(d *apps.Deployment) { d.Spec.Template = fixture.App{Image: "v1", Sidecar: "s1"}.Template() })
	before := sorted(s.pods.objects)
	s.edit("sets the sidecar's image", fixture.App{Image: "v1", Sidecar: "s2"})
	s.rest()
	s.expect("A marks", "B marks", "out 1", "A 1 → 0", "move 1", "B 0 → 1", "A marks", "B marks")
	s.intact(before)
	containers := s.kubelet.state[before[0].Name]
	if was := before[0].Status.ContainerStatuses; containers["app"].id != was[0].ContainerID || containers["side"].id == was[1].ContainerID {
		t.Errorf("the wrong containers restarted: %+v", containers)
	}
}

// TestStepsOfASidecar: a sidecar restarts like any container, alone or together with others, and in an undo.
func TestStepsOfASidecar(t *testing.T) {
	s := newLockstep(t, 1, func(d *apps.Deployment) { d.Spec.Template = fixture.App{Image: "v1", Mesh: "m1"}.Template() })
	before := sorted(s.pods.objects)
	at := func() (app, mesh string) {
		containers := s.kubelet.state[before[0].Name]
		return containers["app"].id, containers["mesh"].id
	}
	app1, mesh1 := at()
	s.edit("sets the sidecar's image", fixture.App{Image: "v1", Mesh: "m2"})
	s.rest()
	s.expect("A marks", "B marks", "out 1", "A 1 → 0", "move 1", "B 0 → 1", "A marks", "B marks")
	app2, mesh2 := at()
	if app2 != app1 || mesh2 == mesh1 {
		t.Errorf("app went from %s to %s, the sidecar from %s to %s", app1, app2, mesh1, mesh2)
	}
	s.edit("sets both images", fixture.App{Image: "v2", Mesh: "m3"})
	s.rest()
	s.expect("B marks", "C marks", "out 1", "B 1 → 0", "move 1", "C 0 → 1", "B marks", "C marks")
	if app3, mesh3 := at(); app3 == app2 || mesh3 == mesh2 {
		t.Errorf("app is %s and the sidecar %s as before", app3, mesh3)
	}
	s.edit("undoes", fixture.App{Image: "v1", Mesh: "m2"})
	s.rest()
	s.expect("B marks", "C marks", "out 1", "C 1 → 0", "move 1", "B 0 → 1", "B marks", "C marks")
	s.intact(before)
}

// TestStepsOfASidecarOfTheLastEndpoint: the mark of a partially patched pod has the old image, and an undo sets it.
func TestStepsOfASidecarOfTheLastEndpoint(t *testing.T) {
	s := lastEndpoint(t, func(d *apps.Deployment) { d.Spec.Template = fixture.App{Image: "v1", Mesh: "m1"}.Template() })
	before := sorted(s.pods.objects)
	s.edit("sets the sidecar's image", fixture.App{Image: "v1", Mesh: "m2"})
	s.until(s.moved(1))
	half := s.pods.objects[before[0].Name]
	if move := readiness.MoveOf(half); fixture.Images(half) != "app=v1,mesh=m2" || move.Back["mesh"] != "m1" {
		t.Fatalf("partially patched, the pod has %s and the mark %s", fixture.Images(half), move)
	}
	s.edit("undoes", fixture.App{Image: "v1", Mesh: "m1"})
	s.rest()
	if back := s.pods.objects[before[0].Name]; fixture.Images(back) != "app=v1,mesh=m1" || !s.runsItsSpec(back) {
		t.Errorf("after the undo the pod has %s, or does not run it", fixture.Images(back))
	}
	s.intact(before)
}

// TestStepsOfABadSidecarAndItsUndo: a pod waits for an image that does not exist. An undo takes it back at once, and the others were never
// touched.
func TestStepsOfABadSidecarAndItsUndo(t *testing.T) {
	s := newLockstep(t, 3, func(d *apps.Deployment) { d.Spec.Template = fixture.App{Image: "v1", Mesh: "m1"}.Template() })
	before := sorted(s.pods.objects)
	s.edit("sets an image that is not", fixture.App{Image: "v1", Mesh: "m-bad"})
	s.rest()
	s.expect("A marks", "B marks", "out 1", "A 3 → 2", "move 1", "B 0 → 1")
	s.edit("undoes", fixture.App{Image: "v1", Mesh: "m1"})
	s.rest()
	s.expect("out 1", "B 1 → 0", "move 1", "A 2 → 3", "A marks", "B marks")
	s.intact(before)
}

func TestMinReadySecondsPass(t *testing.T) {
	s := newLockstep(t, 2, func(d *apps.Deployment) { d.Spec.MinReadySeconds = 5 })
	s.now = s.now.Add(10 * time.Second)
	s.rest()
	before := sorted(s.pods.objects)
	s.edit("sets the image", fixture.App{Image: "v2"})
	first := sorted(s.pods.objects)[0].Name
	s.until(func() bool { return s.moved(1)() && apps.IsTrue(s.pods.objects[first], corev1.PodReady) })
	opened := s.now
	s.until(func() bool { return slices.Contains(s.steps, "out 2") })
	if waited := s.now.Sub(opened); waited < 4*time.Second { // conditions have whole seconds
		t.Errorf("the second pod's turn came %s after the first served", waited)
	}
	s.rest()
	s.now = s.now.Add(10 * time.Second)
	s.rest()
	s.intact(before)
}

func TestFallBack(t *testing.T) {
	s, _ := partial(t)
	s.world.rules.fellBack = true
	fallback := s.rollout().FallBack(inplace.Reason{Code: inplace.CodeRefused, Message: "a policy says no"})
	for _, step := range fallback.Steps {
		s.note(step)
		if err := s.carryOut(step); err != nil {
			t.Fatal(err)
		}
	}
	s.expect() // pod 2 has just moved: neither the kubelet nor the ReplicaSet controller knows
	if s.rollout().Decision().Held {
		t.Error("still held")
	}
	s.rest()
	s.intact(nil)
	if len(s.pods.objects) != 3 {
		t.Errorf("the native rollout ended with %d pods", len(s.pods.objects))
	}
}

func TestFallbackRevisionIsNudgedUntilItIsAlone(t *testing.T) {
	r := fixture.New(3, fixture.App{Image: "v2"})
	oldRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 3)
	newRS := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
	for _, name := range []string{"p", "q", "r"} {
		fixture.PodOf(r, name, oldRS)
	}
	r.Seen.Fallback.Hash = r.TemplateHash()
	newRS.Labels[inplace.LabelRenewed] = fmt.Sprint(fixture.Start.Unix() - 20)
	if plan := r.Plan(); len(plan.Steps) > 0 || plan.After != revisions.RenewEvery-20*time.Second || plan.Phase != steps.PhaseNative {
		t.Errorf("after 20 s the plan is %+v", plan)
	}
	r.Seen.Now = fixture.Start.Add(time.Minute)
	if plan := r.Plan(); len(plan.Steps) != 1 || plan.Steps[0].Describe() != "ReplicaSet web-b: renewed" {
		t.Errorf("after 80 s the plan is %+v", plan)
	}
	oldRS.Spec.Replicas, oldRS.Status.Replicas, r.Seen.Pods = new(int32), 0, nil
	if plan := r.Plan(); len(plan.Steps) != 1 || firstDone(plan.Steps[0]) != "add" {
		t.Errorf("while the update revision lacks replicas the plan is %+v", plan)
	}
	newRS.Spec.Replicas = new(int32(3))
	if plan := r.Plan(); len(plan.Steps) != 1 || firstDone(plan.Steps[0]) != "add" {
		t.Errorf("while the update revision lacks pods the plan is %+v", plan)
	}
	for _, name := range []string{"s", "t", "u"} {
		fixture.PodOf(r, name, newRS)
	}
	plan := r.Plan()
	if len(plan.Steps) != 2 || plan.Steps[0].Describe() != "web: forget its fallback" || firstDone(plan.Steps[1]) != "remove" {
		t.Errorf("once only the update revision has replicas the plan is %+v", plan)
	}
}

// firstDone returns the first operation after the guard.
func firstDone(step steps.Step) string {
	_, operations := fixture.GuardOf(step.(steps.PatchReplicaSet).Operations)
	return operations[0].Operation
}

func TestFallBackWithoutAnUpdateRevision(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v2"})
	r.Deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	oldRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1)
	fixture.PodOf(r, "p", oldRS)
	label := func(plan steps.Plan) string {
		if plan.Decision.Held {
			t.Fatalf("the plan is %+v", plan)
		}
		for _, step := range plan.Steps {
			switch s := step.(type) {
			case steps.PersistFallback:
				r.Seen.Fallback = s.Fallback
			case steps.ForgetFallback:
				r.Seen.Fallback = revisions.Fallback{}
			case steps.PatchReplicaSet:
				if err := fixture.Apply(s.ReplicaSet, s.Operations); err != nil {
					t.Fatal(err)
				}
			default:
				t.Fatalf("the plan is %+v", plan)
			}
		}
		return oldRS.Labels[inplace.LabelRenewed]
	}
	first := label(r.FallBack(inplace.Reason{Code: inplace.CodeRefused, Message: "refused"}))
	if decision := r.Decision(); decision.Held || decision.Reasons[0].Code != inplace.CodeFellBack {
		t.Fatalf("without an update revision it does not fall back: %+v", decision)
	}
	if again := label(r.Plan()); again != first {
		t.Errorf("nudged at once: %s, then %s", first, again)
	}
	r.Seen.Now = r.Seen.Now.Add(revisions.RenewEvery)
	if later := label(r.Plan()); later == first || later == "" {
		t.Errorf("a minute later the label is %q", later)
	}
	newRS := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
	if decision := r.Decision(); decision.Held || decision.UpdateRevision != newRS {
		t.Errorf("held once the update revision is there: %+v", decision)
	}
	oldRS.Spec.Replicas, oldRS.Status.Replicas, r.Seen.Pods = new(int32), 0, nil
	fixture.PodOf(r, "q", newRS)
	if last := label(r.Plan()); last != "" || r.Seen.Fallback.Hash != "" {
		t.Errorf("in the end the label is %q, the fallback %v", last, r.Seen.Fallback)
	}
}

func TestFallBackLeavesNoLabelWhereNothingIsLeftToDo(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v2"})
	newRS := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
	pod := fixture.PodOf(r, "p", newRS, fixture.Out)
	plan := r.FallBack(inplace.Reason{Code: inplace.CodeUninstalled, Message: "uninstalled"})
	if len(plan.Steps) != 1 || plan.Steps[0].Describe() != (steps.SetReady{Pod: pod, Why: "its containers run what they should"}).Describe() {
		t.Errorf("the plan is %+v", plan)
	}
}

func TestLabelTakenOffMidUpdate(t *testing.T) {
	s, _ := partial(t)
	s.mode = inplace.ModeNone
	s.rest()
	s.intact(nil) // the removal of the marks has nudged the native controllers
}

// TestTooLargeMidUpdate has an update in progress whose ReplicaSets are read as outlines without templates, because other objects have
// become too large.
func TestTooLargeMidUpdate(t *testing.T) {
	r := fixture.New(2, fixture.App{Image: "v2"})
	oldRS, newRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
	shut := fixture.PodOf(r, "p1", oldRS, fixture.Out)
	fixture.PodOf(r, "p2", newRS)
	for _, rs := range r.ReplicaSets {
		rs.Labels[inplace.LabelUpdating], rs.Spec.Template = "1", apps.Template{}
	}
	r.Seen.Unread = "too large"
	plan := r.Plan()
	patched := map[string]bool{}
	for _, step := range plan.Steps {
		switch s := step.(type) {
		case steps.SetReady:
			patched[s.Pod.Name] = !s.Out
		case steps.PatchReplicaSet:
			patched[s.ReplicaSet.Name] = true
		default:
			t.Errorf("%s", step.Describe())
		}
	}
	if plan.Decision.Held || len(patched) != 3 || !patched[shut.Name] || !patched[oldRS.Name] || !patched[newRS.Name] {
		t.Errorf("the plan is %+v, want the pod back in service and the marks off", plan)
	}
}

// TestLabelTakenOffWhileAPodIsPartiallyPatched: the policies allow such a pod to go back, and nothing else.
func TestLabelTakenOffWhileAPodIsPartiallyPatched(t *testing.T) {
	s := lastEndpoint(t, nil)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.until(func() bool { return slices.Contains(s.steps, "patch 1") })
	s.mode, s.steps = inplace.ModeNone, nil
	s.plan()
	if !slices.Contains(s.steps, "patch 1") {
		t.Errorf("pod 1 did not go back: %v", s.steps)
	}
	s.rest()
	s.intact(nil)
}

// takesOut returns the names of the pods that the plan takes out of service.
func takesOut(plan steps.Plan) []string {
	var names []string
	for _, step := range plan.Steps {
		if ready, ok := step.(steps.SetReady); ok && ready.Out {
			names = append(names, ready.Pod.Name)
		}
	}
	return names
}

func TestTurns(t *testing.T) {
	percent := func(value string) *intstr.IntOrString { return new(intstr.Parse(value)) }
	terminating := func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: fixture.Start} }
	newPod := func(pod *corev1.Pod) {
		fixture.Unready(pod)
		pod.CreationTimestamp = metav1.NewTime(fixture.Start.Add(-readiness.KubeletMargin + time.Second))
	}
	neverRan := func(pod *corev1.Pod) {
		fixture.Unready(pod)
		pod.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Containers: map[string]readiness.MovedContainer{
			"app": {ContainerID: pod.Status.ContainerStatuses[0].ContainerID}}}.String()}
	}
	cases := map[string]struct {
		maxUnavailable string
		old, new       []func(*corev1.Pod)
		want           []string
	}{
		"one at a time":                              {"1", make([]func(*corev1.Pod), 4), nil, []string{"old0"}},
		"two at a time":                              {"50%", make([]func(*corev1.Pod), 4), nil, []string{"old0", "old1"}},
		"a percentage that rounds to none":           {"10%", make([]func(*corev1.Pod), 4), nil, []string{"old0"}},
		"one that does not serve, beside the budget": {"1", []func(*corev1.Pod){nil, nil, fixture.Unready, nil}, nil, []string{"old2"}},
		"two that do not serve, with the surge": {"1", []func(*corev1.Pod){nil, fixture.Unready, fixture.Unready, nil}, nil,
			[]string{"old1", "old2"}},
		"not one that was just created": {"1", []func(*corev1.Pod){nil, nil, newPod, nil}, nil, nil},
		"no more of them than native would replace": {"1",
			[]func(*corev1.Pod){fixture.Unready, fixture.Unready, fixture.Unready, fixture.Unready}, nil,
			[]string{"old0", "old1"}},
		"all that never ran": {"1", []func(*corev1.Pod){neverRan, neverRan, neverRan, nil}, nil,
			[]string{"old0", "old1", "old2"}},
		"none while a new one is not ready":  {"1", make([]func(*corev1.Pod), 3), []func(*corev1.Pod){fixture.Unready}, nil},
		"the next when the new one is":       {"1", make([]func(*corev1.Pod), 3), []func(*corev1.Pod){nil}, []string{"old0"}},
		"none while one is being deleted":    {"1", []func(*corev1.Pod){nil, nil, nil, terminating}, nil, nil},
		"one that is drained keeps its turn": {"1", []func(*corev1.Pod){nil, fixture.Out, nil, nil}, nil, nil},
		"none while pods are to be added":    {"2", make([]func(*corev1.Pod), 3), nil, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(4, fixture.App{Image: "v2"})
			r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = percent(c.maxUnavailable)
			r.Deployment.Spec.Strategy.RollingUpdate.MaxSurge = percent("1")
			oldRS, newRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, int32(len(c.old))), fixture.ReplicaSetOf(r, "b",
				fixture.App{Image: "v2"}, int32(len(c.new)))
			for i, change := range c.old {
				fixture.PodOf(r, fmt.Sprintf("old%d", i), oldRS, change)
			}
			for i, change := range c.new {
				fixture.PodOf(r, fmt.Sprintf("new%d", i), newRS, change)
			}
			for _, rs := range r.ReplicaSets {
				rs.Labels[inplace.LabelUpdating] = fixture.Begun
			}
			if got := takesOut(r.Plan()); !slices.Equal(got, c.want) {
				t.Errorf("it is the turn of %v, not %v", got, c.want)
			}
		})
	}
}

// resized returns the descriptions of the plan's patches of ReplicaSets.
func resized(plan steps.Plan) []string {
	var sizes []string
	for _, step := range plan.Steps {
		if patch, ok := step.(steps.PatchReplicaSet); ok {
			sizes = append(sizes, patch.Describe())
		}
	}
	return sizes
}

func TestMovingWaits(t *testing.T) {
	cases := map[string]struct {
		change func(r *deployments.Rollout, oldRS, newRS *apps.ReplicaSet)
		sizes  []string
		moves  int
	}{
		"not when drained": {func(r *deployments.Rollout, oldRS, _ *apps.ReplicaSet) {
			fixture.PodOf(r, "p", oldRS, fixture.Out)
		}, []string{"ReplicaSet web-a: replicas 1 → 0"}, 0},
		"not for the lowered replicas to be observed": {func(r *deployments.Rollout, oldRS, _ *apps.ReplicaSet) {
			fixture.PodOf(r, "p", oldRS, fixture.Out)
			oldRS.Spec.Replicas, oldRS.Generation = new(int32), 2
		}, nil, 1},
		"not when they are": {func(r *deployments.Rollout, oldRS, _ *apps.ReplicaSet) {
			fixture.PodOf(r, "p", oldRS, fixture.Out)
			oldRS.Spec.Replicas = new(int32)
		}, nil, 1},
		"not for the pods to be counted": {func(r *deployments.Rollout, oldRS, _ *apps.ReplicaSet) {
			fixture.PodOf(r, "p", oldRS, fixture.Out)
			oldRS.Spec.Replicas, oldRS.Status.Replicas = new(int32), 0
		}, nil, 1},
		"not for the moved pod to be seen": {func(r *deployments.Rollout, oldRS, newRS *apps.ReplicaSet) {
			fixture.PodOf(r, "p", newRS, fixture.Out)
			oldRS.Spec.Replicas = new(int32)
		}, []string{"ReplicaSet web-b: replicas 0 → 1"}, 0},
		"not when it is seen to have left": {func(r *deployments.Rollout, oldRS, newRS *apps.ReplicaSet) {
			fixture.PodOf(r, "p", newRS, fixture.Out)
			oldRS.Spec.Replicas, oldRS.Status.Replicas = new(int32), 0
		}, []string{"ReplicaSet web-b: replicas 0 → 1"}, 0},
		"not when it is": {func(r *deployments.Rollout, oldRS, newRS *apps.ReplicaSet) {
			fixture.PodOf(r, "p", newRS, fixture.Out)
			oldRS.Spec.Replicas, oldRS.Status.Replicas, newRS.Status.Replicas = new(int32), 0, 1
		}, []string{"ReplicaSet web-b: replicas 0 → 1"}, 0},
		"for the raised replicas to be observed": {func(r *deployments.Rollout, oldRS, newRS *apps.ReplicaSet) {
			fixture.PodOf(r, "p", newRS, fixture.Out)
			oldRS.Spec.Replicas, oldRS.Status.Replicas, newRS.Status.Replicas = new(int32), 0, 1
			newRS.Spec.Replicas, newRS.Generation = new(int32(1)), 2
		}, nil, 0},
		"not when all is seen": {func(r *deployments.Rollout, oldRS, newRS *apps.ReplicaSet) {
			fixture.PodOf(r, "p", newRS, fixture.Out)
			oldRS.Spec.Replicas, oldRS.Status.Replicas, newRS.Status.Replicas = new(int32), 0, 1
			newRS.Spec.Replicas = new(int32(1))
		}, []string{"ReplicaSet web-a: marks", "ReplicaSet web-b: marks"}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v2"})
			oldRS, newRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
			oldRS.Labels[inplace.LabelUpdating], newRS.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
			c.change(r, oldRS, newRS)
			plan := r.Plan()
			moves := 0
			for _, step := range plan.Steps {
				if patch, ok := step.(steps.PatchPod); ok && patch.Moves {
					moves++
				}
			}
			if sizes := resized(plan); !slices.Equal(sizes, c.sizes) || moves != c.moves {
				t.Errorf("%d moves, ReplicaSets %q", moves, sizes)
			}
		})
	}
}

func TestNativeRolloutInProgressGoesOn(t *testing.T) {
	s := newLockstep(t, 4, nil)
	s.mode = inplace.ModeNone
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.until(func() bool { return len(s.pods.objects) > 4 })
	s.mode = inplace.ModeInPlace
	s.rest()
	s.intact(nil)
	for _, pod := range s.pods.objects {
		if pod.Annotations[inplace.AnnotationMove] != "" {
			t.Errorf("pod %s was moved during a native rollout", pod.Name)
		}
	}
}

// TestTooManyPods: in a native rollout there are more pods than replicas because new ones are created. In an update by Stayput there are
// more after the Deployment was scaled down.
func TestTooManyPods(t *testing.T) {
	for name, c := range map[string]struct {
		marked string
		phase  steps.Phase
	}{
		"a native rollout":            {"", steps.PhaseNative},
		"scaled down in the middle":   {"1", steps.PhaseScaling},
		"scaled down, deletions pass": {fixture.Begun + revisions.Scaling, steps.PhaseScaling},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(2, fixture.App{Image: "v2"})
			oldRS, newRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
			for _, rs := range []*apps.ReplicaSet{oldRS, newRS} {
				rs.Labels[inplace.LabelUpdating] = c.marked
			}
			fixture.PodOf(r, "p", oldRS)
			fixture.PodOf(r, "q", oldRS)
			fixture.PodOf(r, "r", newRS)
			if plan := r.Plan(); plan.Phase != c.phase {
				t.Errorf("%s (%s) instead of %s", plan.Phase, plan.Message, c.phase)
			}
		})
	}
}

func TestQuotaDoesNotBlockTheEnd(t *testing.T) {
	r := fixture.New(2, fixture.App{Image: "v2"})
	oldRS, newRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
	fixture.PodOf(r, "p", newRS)
	oldRS.Status.Replicas = 0
	oldRS.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue}}
	oldRS.Labels[inplace.LabelUpdating], newRS.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
	planned := r.Plan().Steps
	if !slices.ContainsFunc(planned, func(s steps.Step) bool { return strings.HasPrefix(s.Describe(), "ReplicaSet web-a: replicas 1 → 0") }) {
		t.Errorf("the old ReplicaSet keeps the replicas it cannot create: %v", planned)
	}
}
