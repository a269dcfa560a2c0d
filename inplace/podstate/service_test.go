package podstate_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// TestTakeOutAndPutBack: the patches change Ready and no other condition, whatever conditions there are.
func TestTakeOutAndPutBack(t *testing.T) {
	none := func(pod *corev1.Pod) { pod.Status.Conditions = nil }
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		back   corev1.ConditionStatus
		why    string
	}{
		"it serves":         {func(*corev1.Pod) {}, corev1.ConditionTrue, "its containers run what they should"},
		"no conditions yet": {none, corev1.ConditionFalse, "its containers are not ready anyway"},
		"it is not ready":   {fixture.Unready, corev1.ConditionFalse, "its containers are not ready anyway"},
		"it is out already": {fixture.OutSince(fixture.Start.Add(-time.Hour)), corev1.ConditionTrue, "its containers run what they should"},
		"only its own Ready": {func(pod *corev1.Pod) { none(pod); fixture.Out(pod) }, corev1.ConditionFalse,
			"its containers are not ready anyway"},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), c.change)
			containers := fixture.ConditionStatus(pod, corev1.ContainersReady)
			out := podstate.TakeOut(pod, 2*time.Minute, fixture.Start, "it restarts")
			if err := fixture.Apply(pod, out.Operations); err != nil {
				t.Fatal(err)
			}
			want := "Stayput keeps the pod out of service before its containers restart, at most until 1970-01-12T13:49:40Z" // in 3 min
			if got := apps.Condition(pod, corev1.PodReady).Message; !out.Out || out.Why != "it restarts" || !readiness.Out(pod) || got != want {
				t.Errorf("%+v: %q, want %q", out, got, want)
			}
			back := podstate.PutBack(pod, fixture.Start)
			if err := fixture.Apply(pod, back.Operations); err != nil {
				t.Fatal(err)
			}
			if got := fixture.ConditionStatus(pod, corev1.PodReady); back.Out || back.Why != c.why || got != c.back || readiness.Out(pod) {
				t.Errorf("%s: Ready is %s, because %s", back.Describe(), got, back.Why)
			}
			if got := fixture.ConditionStatus(pod, corev1.ContainersReady); got != containers {
				t.Errorf("ContainersReady is %q, was %q", got, containers)
			}
		})
	}
}

func TestPutAllBack(t *testing.T) {
	// patched is a pod that was patched while it was out of service, and whose old container runs.
	patched := func(pod *corev1.Pod) {
		*pod = *fixture.PatchedOut()
		pod.Status.ContainerStatuses[0].ContainerID = "old"
	}
	restarted := func(pod *corev1.Pod) { *pod = *fixture.PatchedOut() }
	// again has restarted under another name of its image, as far as the last report says.
	again := func(pod *corev1.Pod) {
		patched(pod)
		pod.Status.ContainerStatuses[0].ContainerID = "new"
		move := readiness.MoveOf(pod)
		app := move.Containers["app"]
		app.Restart, app.At.Time = true, fixture.Start.Add(-15*time.Second)
		move.Containers = map[string]readiness.MovedContainer{"app": app}
		pod.Annotations[inplace.AnnotationMove] = move.String()
	}
	for name, c := range map[string]struct {
		change                      func(*corev1.Pod)
		turn, removing, unreachable bool
		back                        bool
		after                       time.Duration
	}{
		"in service":                       {change: func(*corev1.Pod) {}},
		"not ready":                        {change: fixture.Unready},
		"out":                              {change: fixture.Out, back: true},
		"out, and it has its turn":         {change: fixture.Out, turn: true},
		"out, and it is being removed":     {change: fixture.Out, removing: true},
		"out, and its node is unreachable": {change: fixture.Out, unreachable: true},
		"patched":                          {change: patched},
		"restarted":                        {change: restarted, back: true},
		"restarted, and it has its turn":   {change: restarted, turn: true},
		"perhaps restarted":                {change: again, after: 25 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), c.change)
			work := podstate.Work{MarkedPod: podstate.MarkedPod{Pod: pod, Move: readiness.MoveOf(pod)}}
			s := &podstate.State{Work: work, Removing: c.removing, Unreachable: c.unreachable}
			plan := &steps.PlanBuilder{}
			s.Turn = c.turn
			podstate.PutAllBack(plan, []*podstate.State{s}, fixture.Start)
			if back := fixture.Brief(plan.Result.Steps) == "back p"; back != c.back || len(plan.Result.Steps) > 1 || plan.Result.After != c.after {
				t.Errorf("%q, and again in %s", fixture.Brief(plan.Result.Steps), plan.Result.After)
			}
		})
	}
}

// TestStateOfAPodThatIsOut: it counts as neither available nor applied by a guess.
func TestStateOfAPodThatIsOut(t *testing.T) {
	for name, c := range map[string]struct {
		change             func(*corev1.Pod)
		minReadySeconds    int32
		serving, available bool
		in                 time.Duration
	}{
		"serves":                  {func(*corev1.Pod) {}, 10, true, true, 0},
		"out":                     {fixture.Out, 10, false, false, 0},
		"back a moment ago":       {readySince(4 * time.Second), 10, true, false, 6 * time.Second},
		"back, without a minimum": {readySince(0), 0, true, true, 0},
		"not ready":               {fixture.Unready, 10, false, false, 0},
		// Users would be told that it has to be Ready for some seconds more.
		"out, and a startup probe runs": {func(pod *corev1.Pod) { probedSince(2 * time.Second)(pod); fixture.Out(pod) }, 10, false, false, 0},
		"not ready, and a startup probe runs": {func(pod *corev1.Pod) { probedSince(2 * time.Second)(pod); fixture.Unready(pod) }, 0, false,
			false, 0},
		"a startup probe runs":       {probedSince(2 * time.Second), 0, false, false, 13 * time.Second},
		"Ready by its old container": {func(pod *corev1.Pod) { readySince(4 * time.Second)(pod); patched(pod) }, 10, false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), c.change)
			s := podstate.StateOf(&steps.PlanBuilder{}, pod, podstate.PodRevision{Updated: true}, dryrun.NewPods{}, c.minReadySeconds,
				fixture.Start)
			if s.Serving != c.serving || s.Available != c.available || s.AvailableIn != c.in {
				t.Errorf("serving %t, available %t in %s", s.Serving, s.Available, s.AvailableIn)
			}
		})
	}
}

// probedSince has restarted that long ago. Its startup probe, with a period of 10 s, may not have answered yet.
func probedSince(ago time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		apps.Condition(pod, corev1.ContainersReady).LastTransitionTime = metav1.NewTime(fixture.Start.Add(-ago))
		fixture.Probed(&corev1.Probe{PeriodSeconds: 10}, nil, 0)(pod)
	}
}

// patched was patched for v2 while it served, and its kubelet has not stopped the container yet.
func patched(pod *corev1.Pod) {
	mark := readiness.Move{Hash: "b", Containers: map[string]readiness.MovedContainer{"app": {Image: "v2", ContainerID: "p/app"}}}
	pod.Annotations = map[string]string{inplace.AnnotationMove: mark.String()}
}

func readySince(ago time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		apps.Condition(pod, corev1.PodReady).LastTransitionTime = metav1.NewTime(fixture.Start.Add(-ago))
	}
}
