package podstate

import (
	"github.com/stayput/stayput/inplace/readiness"
)

// Stuck reports whether the containers that are to change cannot pull what they have now. An undo always gets through to them.
func (s *State) Stuck() bool {
	for change := range s.Containers.NewImages() {
		waiting := readiness.ContainerStatus(s.Pod, change.Container).State.Waiting
		if waiting == nil || !readiness.CannotPull[waiting.Reason] {
			return false
		}
	}
	return true
}
