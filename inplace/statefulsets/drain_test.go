package statefulsets_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
)

// carryOut carries out one plan. No kubelet acts.
func carryOut(m *fixture.Members) {
	m.Fleet.Seen.Now = m.Fleet.Seen.Now.Add(time.Second)
	m.Observed()
	for _, step := range m.Of().Plan().Steps {
		m.CarryOut(step)
	}
}

// TestLastEndpointServes: such a pod serves until its container stops, with either policy.
func TestLastEndpointServes(t *testing.T) {
	for name, change := range map[string]func(*fixture.Members){"OrderedReady": func(*fixture.Members) {}, "Parallel": fixture.Parallel} {
		m := fixture.NewMembers(t, 2, change)
		m.Last("db-0")
		m.Edit(fixture.App{Image: "v2"})
		m.Rest()
		want := slices.Concat([]string{"mark 2 true false"}, drained("db-1", "db-2", "v2"), moved("db-0", "db-2", "v2"),
			[]string{"mark 2 false false"})
		if !slices.Equal(m.Steps, want) {
			t.Errorf("%s: steps are %q, not %q", name, m.Steps, want)
		}
	}
}

// TestPodOutOfServiceUntilItsRestart has what kubelets report of a pod, from when it is taken out of service.
func TestPodOutOfServiceUntilItsRestart(t *testing.T) {
	for name, test := range map[string]struct {
		alone bool
		out   []bool // after each report
	}{
		"a manager answers": {false, []bool{true, true, false}},
		"none does":         {true, []bool{false, false, false}},
	} {
		m := fixture.NewMembers(t, 1)
		m.Edit(fixture.App{Image: "v2"})
		carryOut(m) // the mark
		carryOut(m) // out of service
		pod := m.Member(0)
		m.Alone = test.alone
		for i, want := range test.out {
			if i == 1 {
				m.Alone = false // the leader takes it out again, and patches it
				carryOut(m)
				if test.alone {
					carryOut(m)
				}
				m.Alone = test.alone
			}
			m.Kubelet(pod)
			if out := readiness.Out(pod); out != want || apps.IsTrue(pod, corev1.PodReady) == want {
				t.Errorf("%s: after report %d it is out of service: %t, %+v", name, i, out, pod.Status.Conditions)
			}
		}
		if got := fixture.Images(pod); got != "app=v2" || pod.Status.ContainerStatuses[0].Image != "v2" {
			t.Errorf("%s: it has %s", name, got)
		}
	}
}

// TestUpdateWithoutManagers: all managers end for good at any moment of an update. The pods serve in the end.
func TestUpdateWithoutManagers(t *testing.T) {
	for plans := range 8 {
		for _, last := range [][]string{nil, {"db-1"}} {
			m := fixture.NewMembers(t, 2)
			m.Last(last...)
			m.Edit(fixture.App{Image: "v2"})
			for range plans {
				carryOut(m)
			}
			m.Alone = true
			for range 3 {
				m.Kubelet(m.Member(1))
			}
			if pod := m.Member(1); readiness.Out(pod) || !apps.IsTrue(pod, corev1.PodReady) {
				t.Errorf("after %q it has %+v", m.Steps, pod.Status.Conditions)
			}
		}
	}
}
