package podstate_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// TestOnTimeUntil: the progress deadline must not run while a pod drains, and must run once the drain has taken long enough.
func TestOnTimeUntil(t *testing.T) {
	const drain = 2 * time.Second
	outFor := func(d time.Duration) func(*corev1.Pod) { return fixture.OutSince(fixture.Start.Add(-d)) }
	noStatus := func(pod *corev1.Pod) { pod.Status.Conditions = nil }
	listed, drained := podstate.Endpoint{Listed: true}, podstate.Endpoint{OutSince: fixture.Start.Add(-drain)}
	for name, c := range map[string]struct {
		change   func(*corev1.Pod)
		turn     bool
		held     time.Duration
		endpoint podstate.Endpoint
		want     time.Time
	}{
		"serves":                                   {endpoint: listed},
		"serves until its containers stop":         {turn: true, endpoint: listed},
		"has its turn, and its kubelet is silent":  {change: noStatus, turn: true},
		"out, and goes back":                       {change: outFor(time.Second), endpoint: listed},
		"drains":                                   {change: outFor(time.Second), turn: true, endpoint: listed, want: fixture.Start},
		"is drained":                               {change: outFor(5 * time.Second), turn: true, endpoint: drained},
		"is drained, and a hook holds it":          {outFor(5 * time.Second), true, time.Second, drained, fixture.Start},
		"its drain takes longer than a drain may":  {change: outFor(podstate.DrainPatience + drain), turn: true, endpoint: listed},
		"goes back, and a hook would have held it": {change: outFor(5 * time.Second), held: 1, endpoint: drained},
	} {
		r := fixture.New(1, fixture.App{Image: "v1"})
		pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), c.change)
		s := &podstate.State{Work: podstate.Work{MarkedPod: podstate.MarkedPod{Pod: pod}}, Turn: c.turn, HeldFor: c.held}
		if got := s.OnTimeUntil(podstate.Endpoints{pod.UID: c.endpoint}, drain, fixture.Start); !got.Equal(c.want) {
			t.Errorf("%s: on time until %v, want %v", name, got, c.want)
		}
	}
}

// TestContainersThatServeOn: a container whose preStop hook sleeps for 5 s serves that long after the patch, so the patch may come 5 s
// before the end of the drain. Where nothing sleeps, clients would get errors if it came sooner.
func TestContainersThatServeOn(t *testing.T) {
	const drain = 10 * time.Second
	app, side := fixture.Reimaged("app", "v2").Containers, fixture.Reimaged("side", "s2").Containers
	for name, c := range map[string]struct {
		state podstate.State
		want  time.Duration
	}{
		"its container sleeps":        {podstate.State{Work: podstate.Work{Containers: app}}, 5 * time.Second},
		"its other container, too":    {podstate.State{Work: podstate.Work{Containers: slices.Concat(app, side)}}, 0},
		"a surge pod that is removed": {podstate.State{Work: podstate.Work{Containers: app}, Removing: true}, 0},
		"nothing restarts":            {podstate.State{}, 0},
	} {
		r := fixture.New(1, fixture.App{Image: "v1", Sidecar: "s1"})
		pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1", Sidecar: "s1"}, 1), fixture.Out)
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}}
		c.state.Pod = pod
		endpoints := podstate.Endpoints{pod.UID: {OutSince: fixture.Start}}
		if _, left := c.state.Drained(endpoints, drain, fixture.Start); left != drain-c.want {
			t.Errorf("%s: its drain takes %s more, want %s", name, left, drain-c.want)
		}
		if step := c.state.Patch(podstate.Write{}, true, readiness.Move{}, nil, ""); step.ServesOn != c.want {
			t.Errorf("%s: its containers serve for %s after the patch, want %s", name, step.ServesOn, c.want)
		}
	}
}
