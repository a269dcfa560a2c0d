package inplace

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// podState is a live pod, and what an update needs of it, whatever the kind of its workload.
type podState struct {
	pod  *corev1.Pod
	move Move
	origin
	// needs is what is left to do until it is one of the target.
	needs Change
	// back is what makes it again what its identity says; nothing unless it is half-way.
	back Change
	// rewritten are its containers with images that neither their template nor our patches have given them: admission has changed those.
	rewritten []ContainerChange
	// available as natively (Ready for minReadySeconds), neither being drained nor still what it was before a patch, and not for a moment only.
	available bool
	// comes is when it will be available if that is only a matter of time; 0 if it is not, or is already.
	comes time.Duration
	// arrived: its containers have followed the last patch.
	arrived bool
	// unheard: nobody hears of its kubelet, and somebody looks again when it is back. Where the API server says what is Ready (ready.go), a gate
	// that opens would have the pod Ready for as long as the node is away.
	unheard bool
	// borrowed: it exists only while others are updated. goes: it is given back.
	borrowed, goes bool
}

// live is IsPodActive of pkg/controller/controller_utils.go, and so what status.replicas of a ReplicaSet counts.
func live(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !terminal(pod)
}

// state looks at a pod of that origin.
func (d *draft) state(pod *corev1.Pod, from origin, target rehearsed, ahead Ahead, minReadySeconds int32, now time.Time) podState {
	s := podState{pod: pod, move: moveOf(pod), origin: from, borrowed: pod.Annotations[AnnotationBorrowed] != "", goes: goes(pod)}
	s.back = s.move.wayBack(pod)
	s.needs, s.rewritten = s.stillNeeds(target.containers), s.rewrites()
	arrived, wait := s.move.arrived(pod, now)
	available, later := availableAt(pod, minReadySeconds, now)
	lasting, longer := ahead.lasting(pod, now)
	s.arrived, s.available = arrived, available && arrived && lasting && !Closed(pod)
	d.again(sooner(wait, sooner(later, longer)))
	if arrived && !Closed(pod) {
		s.comes = max(later, longer)
	}
	return s
}

// availableAt is IsPodAvailable of pkg/api/v1/pod/util.go; if it is only a matter of time, of how much.
func availableAt(pod *corev1.Pod, minReadySeconds int32, now time.Time) (bool, time.Duration) {
	ready := condition(pod, corev1.PodReady)
	switch {
	case !IsTrue(pod, corev1.PodReady):
		return false, 0
	case minReadySeconds == 0:
		return true, 0
	case ready.LastTransitionTime.IsZero():
		return false, 0
	}
	return since(ready.LastTransitionTime.Time, time.Duration(minReadySeconds)*time.Second, now)
}

// restarts tells whether containers of the pod have yet to restart.
func (s *podState) restarts() bool { return s.needs.Restarts() }

// toRestart tells whether that is for this update to do: a borrowed pod is given back as it is.
func (s *podState) toRestart() bool { return s.restarts() && !s.borrowed }

// ready tells whether the pod serves, even if not yet for minReadySeconds.
func (s *podState) ready() bool { return IsTrue(s.pod, corev1.PodReady) }

// youth is how long a newborn pod is left to start.
const youth = 10 * time.Second

// starting tells whether the pod was born too recently to be taken for one that does not serve anyway; for how much longer. Its
// kubelet could report it Ready before it knows that the gate is closed, and then take it down beyond all budgets.
func (s *podState) starting(now time.Time) (bool, time.Duration) {
	grown, wait := since(s.pod.CreationTimestamp.Time, youth, now)
	return !grown && !s.ready(), wait
}
