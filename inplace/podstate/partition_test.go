package podstate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
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
