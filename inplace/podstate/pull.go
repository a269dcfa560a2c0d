package podstate

import (
	"github.com/stayput/stayput/inplace/readiness"
)

// Stuck reports whether the containers that are to change cannot pull their present images. Such a pod does not wait for a pre-pull pod, so
// an undo always reaches it.
func (s *State) Stuck() bool {
	for change := range s.Containers.NewImages() {
		waiting := readiness.ContainerStatus(s.Pod, change.Container).State.Waiting
		if waiting == nil || !readiness.CannotPull[waiting.Reason] {
			return false
		}
	}
	return true
}
