package statefulsets_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// drainedLate returns the steps by which a pod is updated that is taken out of service after its patch. The API server opens its gate.
func drainedLate(pod, revision, image string) []string {
	return []string{pod + " is updating-in-place app=" + image, "close " + pod, pod + " is " + revision + " app=" + image}
}

// patched returns a StatefulSet of two pods with gates, whose higher pod was just patched. The API server opens gates.
func patched(t *testing.T, app fixture.App, changes ...func(*fixture.Members)) *fixture.Members {
	t.Helper()
	m := fixture.NewMembers(t, 2, append(changes, fixture.Gated)...)
	m.Says = true
	m.Edit(app)
	for range 5 { // the mark comes first, and a restart has its volumes renewed
		m.Fleet.Seen.Now = m.Fleet.Seen.Now.Add(time.Second)
		if carryOut(m); podstate.HasPartialHash(m.Member(1)) {
			m.Steps = nil
			return m
		}
	}
	t.Fatalf("db-1 is not patched: %q", m.Steps)
	return m
}

// carryOut carries out one plan. No kubelet acts.
func carryOut(m *fixture.Members) {
	m.Observed()
	for _, step := range m.Of().Plan().Steps {
		m.CarryOut(step)
	}
}

// TestDrainsAfterThePatch: under OrderedReady the gate of a pod closes only after the patch, and only if the report of the restart is
// certain to come. Without any manager, that report opens the gate.
func TestDrainsAfterThePatch(t *testing.T) {
	v2, restart := fixture.App{Image: "v2"}, fixture.App{Image: "v1", Restarted: "1"}
	status := func(pod *corev1.Pod) *corev1.ContainerStatus { return &pod.Status.ContainerStatuses[0] }
	seen := func(pod *corev1.Pod) { pod.Status.ObservedGeneration = pod.Generation }
	for name, test := range map[string]struct {
		app    fixture.App
		change func(m *fixture.Members, pod *corev1.Pod)
		drains bool
	}{
		"at once":                     {v2, nil, true},
		"a restart":                   {restart, nil, true},
		"its kubelet knows the patch": {v2, func(_ *fixture.Members, pod *corev1.Pod) { seen(pod) }, true},
		"other pods do not serve":     {v2, func(m *fixture.Members, _ *corev1.Pod) { fixture.Unready(m.Member(0)) }, true},
		"it has no gate":              {v2, func(_ *fixture.Members, pod *corev1.Pod) { fixture.Ungated(pod) }, false},
		"it is not Ready":             {v2, func(_ *fixture.Members, pod *corev1.Pod) { fixture.Unready(pod) }, false},
		"its container has restarted": {v2, func(_ *fixture.Members, pod *corev1.Pod) { status(pod).ContainerID = "other" }, false},
		"its container does not run":  {v2, func(_ *fixture.Members, pod *corev1.Pod) { status(pod).State = corev1.ContainerState{} }, false},
		"its spec has changed again":  {v2, func(_ *fixture.Members, pod *corev1.Pod) { pod.Generation++ }, false},
		"its gate has been moved": {v2, func(m *fixture.Members, pod *corev1.Pod) {
			apps.Condition(pod, inplace.ConditionServing).LastTransitionTime = metav1.NewTime(m.Fleet.Seen.Now)
		}, false},
		"its gate has never opened": {v2, func(_ *fixture.Members, pod *corev1.Pod) {
			pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions,
				func(c corev1.PodCondition) bool { return c.Type == inplace.ConditionServing })
		}, false},
		"its kubelet reports no generations":  {v2, func(_ *fixture.Members, pod *corev1.Pod) { pod.Status.ObservedGeneration = 0 }, false},
		"its kubelet is gone":                 {v2, func(m *fixture.Members, pod *corev1.Pod) { m.Away(pod.Spec.NodeName) }, false},
		"what ran before the patch is unsure": {v2, func(_ *fixture.Members, pod *corev1.Pod) { unsure(pod) }, false},
		"only an auxiliary container restarts": {v2, func(m *fixture.Members, _ *corev1.Pod) {
			m.StatefulSet.Annotations = map[string]string{inplace.AnnotationAuxiliary: "app"}
		}, false},
		"the update is undone": {v2, func(m *fixture.Members, _ *corev1.Pod) { m.Edit(fixture.App{Image: "v1"}) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := patched(t, test.app)
			if test.change != nil {
				test.change(m, m.Member(1))
			}
			carryOut(m)
			if closed := slices.Contains(m.Steps, "close db-1"); closed != test.drains {
				t.Errorf("the steps are %q", m.Steps)
			}
			if !test.drains {
				return
			}
			if pod := m.Member(1); apps.IsTrue(pod, corev1.PodReady) {
				t.Error("it is Ready behind a closed gate")
			}
			if again := m.Of().Plan().Steps; len(again) > 0 {
				t.Errorf("while its container stops, there is %s", again[0].Describe())
			}
			for range 2 {
				m.Fleet.Seen.Now = m.Fleet.Seen.Now.Add(time.Second)
				m.Kubelet(m.Member(1))
			}
			if pod := m.Member(1); readiness.Closed(pod) || !apps.IsTrue(pod, corev1.PodReady) {
				t.Errorf("after its restart it has %+v", pod.Status.Conditions)
			}
		})
	}
}

func unsure(pod *corev1.Pod) {
	move := readiness.MoveOf(pod)
	before := move.Containers["app"]
	before.Unsure = true
	move.Containers["app"] = before
	pod.Annotations[inplace.AnnotationMove] = move.String()
}

// TestDrainAfterThePatchEnds: the leader opens the gate of such a pod, too, as soon as the drain is over or in doubt. Nothing else is
// written before that.
func TestDrainAfterThePatchEnds(t *testing.T) {
	for name, change := range map[string]func(m *fixture.Members, pod *corev1.Pod){
		"no policy answered the closing with Ready=False": func(_ *fixture.Members, pod *corev1.Pod) {
			apps.Condition(pod, corev1.PodReady).Status = corev1.ConditionTrue
		},
		"its container has stopped": func(_ *fixture.Members, pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{}
		},
		"its new container runs, and no policy opened the gate": func(m *fixture.Members, pod *corev1.Pod) {
			m.Says = false
			m.Kubelet(pod)
		},
		"its container failed and restarted unchanged": func(_ *fixture.Members, pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].ContainerID = "another"
		},
		"its spec has changed again":   func(_ *fixture.Members, pod *corev1.Pod) { pod.Generation++ },
		"its mark is gone":             func(_ *fixture.Members, pod *corev1.Pod) { delete(pod.Annotations, inplace.AnnotationMove) },
		"the update is undone":         func(m *fixture.Members, _ *corev1.Pod) { m.Edit(fixture.App{Image: "v1"}) },
		"the user takes back the wish": func(m *fixture.Members, _ *corev1.Pod) { m.Rollout.Seen.Mode = inplace.ModeNotOptedIn },
		"the StatefulSet is deleted": func(m *fixture.Members, _ *corev1.Pod) {
			m.StatefulSet.DeletionTimestamp = &metav1.Time{Time: m.Fleet.Seen.Now}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := patched(t, fixture.App{Image: "v2"})
			carryOut(m)
			m.Expect("close db-1")
			change(m, m.Member(1))
			m.Says = false // what a kubelet reports next is another matter
			carryOut(m)
			moved := slices.ContainsFunc(m.Steps, func(step string) bool { return strings.HasPrefix(step, "db-1 is db-") })
			if !slices.Contains(m.Steps, "open db-1") || moved {
				t.Errorf("the steps are %q", m.Steps)
			}
			if again := m.Of().Plan(); slices.ContainsFunc(again.Steps, closes) {
				t.Errorf("then it closes again: %v", again.Steps)
			}
		})
	}
}

func closes(step steps.Step) bool {
	gate, is := step.(steps.SetGate)
	return is && !gate.Open
}

// TestDrainAfterThePatchEndsWithTheManager: a manager that ends opens such a gate at once, and a fallback does. A restart that was not seen
// does not count as one.
func TestDrainAfterThePatchEndsWithTheManager(t *testing.T) {
	m := patched(t, fixture.App{Image: "v1", Restarted: "1"})
	carryOut(m)
	pod := m.Member(1)
	step, may := podstate.Reopen(pod, false, m.Fleet.Seen.Now)
	if !may {
		t.Fatal("it may not be opened")
	}
	fell := m.Of().FallBack(inplace.Reason{Code: inplace.CodeRefused, Message: "a policy refuses it"})
	if !slices.ContainsFunc(fell.Steps, func(step steps.Step) bool { gate, is := step.(steps.SetGate); return is && gate.Open }) {
		t.Error("a fallback does not open it")
	}
	m.CarryOut(step)
	pod.Status.ObservedGeneration, pod.Status.ContainerStatuses[0].ContainerID = pod.Generation, "another"
	if applied, _ := readiness.MoveOf(pod).Applied(pod, m.Fleet.Seen.Now); applied {
		t.Error("a container that is another one counts as restarted")
	}
}

// TestDrainsBeforeThePatchUnderParallel: the kind decides, not the gate.
func TestDrainsBeforeThePatchUnderParallel(t *testing.T) {
	m := fixture.NewMembers(t, 1, fixture.Parallel)
	m.Says = true
	m.Edit(fixture.App{Image: "v2"})
	for range 10 {
		m.Once()
	}
	m.Expect("mark 2 true false", "close db-0", "db-0 is db-2 app=v2", "mark 2 false false")
}
