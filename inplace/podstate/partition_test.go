package podstate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// TestAnObstacleKeepsPods: a pod goes on if it is on its way to the update revision "b", and stays if it is on its way to another one,
// because the user has edited the template again.
func TestAnObstacleKeepsPods(t *testing.T) {
	refused := inplace.Partition{Obstacle: inplace.Obstacle{
		Reason: inplace.Reason{Code: inplace.CodeNotAdmitted}, OnlyInPlace: true, Stalls: true}}
	for name, test := range map[string]struct {
		move    readiness.Move
		updated bool
		keeps   bool
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
		pod := &podstate.State{Work: podstate.Work{MarkedPod: marked}}
		podstate.PartitionBudgetOf(refused, 1, []*podstate.State{pod})
		if pod.AtPartition != test.keeps {
			t.Errorf("%s: the obstacle keeps the pod: %t", name, pod.AtPartition)
		}
	}
}
