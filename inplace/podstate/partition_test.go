package podstate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// TestAnObstacleKeepsPods: a pod goes on if it is on its way to the update revision "b", and stays if it is on its way to another one,
// because the user has edited the template again. Where no new pod is admitted, it stays in both cases.
func TestAnObstacleKeepsPods(t *testing.T) {
	for name, test := range map[string]struct {
		move    readiness.Move
		updated bool
		keeps   bool // by an obstacle other than that no new pod is admitted
	}{
		"not begun":                      {keeps: true},
		"updated":                        {updated: true},
		"patched for the update":         {move: readiness.Move{Hash: "b", Back: map[string]string{"app": "v1"}}},
		"patched for an earlier update":  {move: readiness.Move{Hash: "c", Back: map[string]string{"app": "v1"}}, keeps: true},
		"patched for one that is undone": {move: readiness.Move{Hash: "c", Back: map[string]string{"app": "v1"}}, updated: true, keeps: true},
		"resized, and nothing restarted": {move: readiness.Move{Hash: "a", Resize: readiness.Resize{"app": {}}}},
	} {
		marked := podstate.MarkedPod{Pod: &corev1.Pod{}, Move: test.move,
			PodRevision: podstate.PodRevision{UpdateHash: "b", Updated: test.updated}}
		for code, keeps := range map[string]bool{
			inplace.CodeNotResized: test.keeps, inplace.CodeNotAdmitted: test.keeps || marked.PartiallyPatched()} {
			pod := &podstate.State{Work: podstate.Work{MarkedPod: marked}}
			obstacle := inplace.Obstacle{Reason: inplace.Reason{Code: code}, OnlyInPlace: true, Stalls: true}
			podstate.PartitionBudgetOf(inplace.Partition{Obstacle: obstacle}, 1, []*podstate.State{pod})
			if pod.AtPartition != keeps {
				t.Errorf("%s: obstacle %s keeps the pod: %t", name, code, pod.AtPartition)
			}
		}
	}
}

// atPartition returns the budget of that partition for those pods.
func atPartition(value string, wanted int, pods ...*podstate.State) podstate.PartitionBudget {
	for i, s := range pods {
		if s.Pod == nil {
			s.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string("abcd"[i])}}
		}
	}
	return podstate.PartitionBudgetOf(inplace.Partition{Value: value}, wanted, pods)
}

func current() *podstate.State {
	s := &podstate.State{Available: true}
	s.Current = true
	return s
}

// TestHoldsPods: as long as a partition keeps pods, the update must not fall back, since that would replace them. If it keeps none, nothing
// else may stop the update from falling back.
func TestHoldsPods(t *testing.T) {
	for value, holds := range map[string]bool{"": false, "0": false, "1": true, "100%": true} {
		budget := atPartition(value, 2, current(), current())
		if got := budget.HoldsPods(); got != holds {
			t.Errorf("partition %q holds pods: %t", value, got)
		}
	}
}

// TestPullsOnly: nodes pull images, and no pod restarts. A workload without pods has none for which images are pulled.
func TestPullsOnly(t *testing.T) {
	for name, c := range map[string]struct {
		value  string
		wanted int
		want   bool
	}{
		"it keeps all pods":  {"100%", 2, true},
		"it keeps one of 2":  {"1", 2, false},
		"it is not valid":    {"half", 2, false},
		"no pods are wanted": {"", 0, false},
	} {
		if got := atPartition(c.value, c.wanted).PullsOnly(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestPrePullsAtAPartition: three of four pods may move. One of them is out of service already, so its images are there. Two change without
// a restart, and need no images. So only one more node pulls.
func TestPrePullsAtAPartition(t *testing.T) {
	out, restarts := current(), current()
	out.Containers, restarts.Containers = fixture.Reimaged("app", "v2").Containers, fixture.Reimaged("app", "v2").Containers
	out.Pod = &corev1.Pod{}
	fixture.Out(out.Pod)
	pods := []*podstate.State{out, restarts, current(), current()}
	for most, want := range map[int]int{0: 0, 1: 1, 10: 1} {
		if got := atPartition("1", 4, pods...).PrePulls(most, pods); got != want {
			t.Errorf("%d nodes may pull, want %d", got, want)
		}
	}
}

// TestWaitsForThePartition: one of two pods stays at the partition. Users are told that the update waits for the partition only when the
// other one is done: until then, something else may be wrong.
func TestWaitsForThePartition(t *testing.T) {
	back := readiness.Move{Hash: "b", Back: map[string]string{"app": "v1"}}
	for name, c := range map[string]struct {
		updated, available bool
		move               readiness.Move
		want               string
	}{
		"done":                          {updated: true, available: true, want: "waiting at partition 1: 1 of 2 pods updated"},
		"updated, and not available":    {updated: true},
		"goes back":                     {updated: true, available: true, move: back},
		"goes back, and does not serve": {updated: true, move: back},
		"restarts while it serves":      {available: true, move: back},
		"has a revision that is gone":   {available: true},
	} {
		other := &podstate.State{Work: podstate.Work{MarkedPod: podstate.MarkedPod{Move: c.move,
			PodRevision: podstate.PodRevision{Updated: c.updated}}}, Available: c.available}
		pods := []*podstate.State{current(), other}
		budget := atPartition("1", 2, pods...)
		if got, byWindow := budget.Waits(pods); got != c.want || byWindow {
			t.Errorf("%s: %q, by a window %t", name, got, byWindow)
		}
	}
}
