package podstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
)

// Restarts reports whether containers of the pod have yet to restart.
func (s *Work) Restarts() bool { return s.Containers.Restarts() }

// Resizes reports whether containers of the pod have yet to be given CPU and memory.
func (s *Work) Resizes() bool { return s.Containers.Resizes() }

// ToRestart reports whether this update is to restart containers of the pod now.
func (s *State) ToRestart() bool { return s.Restarts() && s.takesPart() }

// ToResize reports whether this update has yet to see the pod get its CPU and memory, whether they are written already or not.
func (s *State) ToResize() bool { return s.Resizing && s.takesPart() }

// MayStart reports whether the pod's containers can restart: its new images are on its node, as far as they can be pulled first.
func (s *State) MayStart() bool { return s.Lacks == "" && s.Postponed() == "" }

// PullsOnly reports whether a partition keeps the pod as it is, and its containers would otherwise restart: its node may pull the images.
func (s *State) PullsOnly() bool {
	restartsLater := s.Restarts() && !s.Surge && s.Infeasible == ""
	return restartsLater && s.AtPartition && !s.Kept
}

// takesPart reports whether the pod takes part in the update. A surge pod is removed as it is. A pod at the partition stays as it is, and
// so does a pod whose resize is infeasible on its node.
func (s *State) takesPart() bool { return !s.Surge && !s.AtPartition && s.Infeasible == "" }

// Ready reports whether the pod serves, even if not yet for minReadySeconds.
func (s *MarkedPod) Ready() bool { return apps.IsTrue(s.Pod, corev1.PodReady) }

// Starting reports whether the pod was created too recently to count as a pod that does not serve anyway, and for how much longer: which
// images its containers run is not known yet.
func (s *MarkedPod) Starting(now time.Time) (bool, time.Duration) {
	if s.Ready() {
		return false, 0
	}
	grown, wait := inplace.Since(s.Pod.CreationTimestamp.Time, readiness.KubeletMargin, now)
	return !grown, wait
}
