package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// aRunning returns a pod with this container, which is Ready or not, or was taken out of service.
func aRunning(isReady, out bool, container string) *corev1.Pod {
	pod := aPod("p1", "old", "v1", isReady)
	if out {
		takesOut(pod)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", ContainerID: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	return pod
}

func TestPhaseOfAPod(t *testing.T) {
	creating := aRunning(false, false, "new")
	creating.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
	for name, c := range map[string]struct {
		is      *corev1.Pod
		updated bool
		phase   podPhase
	}{
		"before its turn":                   {aRunning(true, false, "old"), false, untouched},
		"a probe that fails":                {aRunning(false, false, "old"), false, untouched},
		"it is taken out of service":        {aRunning(false, true, "old"), false, drained},
		"the PATCH":                         {aRunning(false, true, "old"), true, patched},
		"no manager answers, the old stops": {aRunning(true, false, "old"), true, patched},
		"the old has stopped":               {aRunning(false, false, "old"), true, patched},
		"the new container is not started":  {creating, true, patched},
		"the new container starts":          {aRunning(false, true, "new"), true, running},
		"it is not Ready":                   {aRunning(false, false, "new"), true, running},
		"it serves":                         {aRunning(true, false, "new"), true, applied},
	} {
		t.Run(name, func(t *testing.T) {
			if phase := phaseOf(aRunning(true, false, "old"), c.is, c.updated); phase != c.phase {
				t.Errorf("it is %s instead of %s", phase, c.phase)
			}
		})
	}
}
