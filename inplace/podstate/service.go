package podstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// TakeOut takes the pod out of service before its containers restart. Its drain may take that long. If the pod is not patched, it stays out
// for inplace.LeaderPatience longer.
func TakeOut(pod *corev1.Pod, drain time.Duration, now time.Time, why string) steps.SetReady {
	ready := readiness.TakenOutUntil(pod, now.Add(drain+inplace.LeaderPatience), now)
	return steps.SetReady{Pod: pod, Out: true, Why: why, Operations: patches.Guarded(pod, readiness.SetReady(pod, ready)...)}
}

// PutBack puts the pod back into service, as far as its containers are ready. Its kubelet would do the same, within 10 s.
func PutBack(pod *corev1.Pod, now time.Time) steps.SetReady {
	why := "its containers are not ready anyway"
	if apps.IsTrue(pod, corev1.ContainersReady) {
		why = "its containers run what they should"
	}
	return steps.SetReady{Pod: pod, Why: why, Operations: patches.Guarded(pod, readiness.SetReady(pod, readiness.PutBack(pod, now))...)}
}

// PutAllBack puts pods back into service that have no turn, as soon as that is safe. The status of a pod on an unreachable node says
// nothing about its containers.
func PutAllBack(d *steps.PlanBuilder, pods []*State, now time.Time) {
	for _, s := range pods {
		if !readiness.Out(s.Pod) || s.Turn || s.Removing || s.Unreachable {
			continue
		}
		back, wait := s.Move.MayGoBack(nil, s.Pod, now)
		d.Again(wait)
		if back {
			d.Step(PutBack(s.Pod, now))
		}
	}
}
