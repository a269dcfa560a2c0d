package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// aRunning returns a pod with its gate open or closed, Ready or not, and this container.
func aRunning(gate, isReady bool, container string) *corev1.Pod {
	pod := aPod("p1", "old", "v1", isReady)
	if !gate {
		conditionOf(pod, servingGate).Status = corev1.ConditionFalse
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", ContainerID: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	return pod
}

func TestPhaseOfAPod(t *testing.T) {
	creating := aRunning(true, false, "new")
	creating.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
	for name, c := range map[string]struct {
		is      *corev1.Pod
		updated bool
		phase   podPhase
	}{
		"before its turn":                  {aRunning(true, true, "old"), false, untouched},
		"a probe that fails":               {aRunning(true, false, "old"), false, untouched},
		"the gate is closed":               {aRunning(false, true, "old"), false, gateClosed},
		"the kubelet has seen it":          {aRunning(false, false, "old"), false, drained},
		"the PATCH":                        {aRunning(false, false, "old"), true, patched},
		"the gate is open, the old stops":  {aRunning(true, false, "old"), true, patched},
		"the new container is not started": {creating, true, patched},
		"the new container starts":         {aRunning(false, false, "new"), true, running},
		"it is not Ready":                  {aRunning(true, false, "new"), true, running},
		"it serves":                        {aRunning(true, true, "new"), true, applied},
	} {
		t.Run(name, func(t *testing.T) {
			if phase := phaseOf(aRunning(true, true, "old"), c.is, c.updated); phase != c.phase {
				t.Errorf("it is %s instead of %s", phase, c.phase)
			}
		})
	}
}
