package podstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/times"
)

// Restarts reports whether containers of the pod have yet to restart.
func (s *State) Restarts() bool { return s.Containers.Restarts() }

// Resizes reports whether containers of the pod have yet to be given CPU and memory.
func (s *State) Resizes() bool { return s.Containers.Resizes() }

// ToRestart reports whether that is for this update to do now.
func (s *State) ToRestart() bool { return s.Restarts() && s.takesPart() }

// ToResize reports whether this update has yet to see the pod get its CPU and memory, written or not.
func (s *State) ToResize() bool { return s.Resizing && s.takesPart() }

// takesPart: a borrowed pod is given back as it is, and a kept one stays so, or one that its node has no room for.
func (s *State) takesPart() bool { return !s.Surge && !s.AtPartition && s.Infeasible == "" }

// Ready reports whether the pod serves, even if not yet for minReadySeconds.
func (s *State) Ready() bool { return conditions.IsTrue(s.Pod, corev1.PodReady) }

// NewPodGrace is how long a newborn pod is left to start.
const NewPodGrace = 10 * time.Second

// Starting reports whether the pod was born, or its gate opened, too recently to be taken for one that does not serve anyway; for how much longer. Its
// kubelet could report it Ready before it knows that the gate is closed, and then take it down beyond all budgets.
func (s *State) Starting(now time.Time) (bool, time.Duration) {
	if s.Ready() {
		return false, 0
	}
	if grown, wait := times.Since(s.Pod.CreationTimestamp.Time, NewPodGrace, now); !grown {
		return true, wait
	}
	return readiness.Reopening(s.Pod, now)
}
