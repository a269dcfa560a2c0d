package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// notes has what was found out about workloads, so that not every event asks the API server. A restarted process asks
// once more.
type notes[T any] struct {
	lock  sync.Mutex
	known map[types.NamespacedName]T
}

func (n *notes[T]) of(workload types.NamespacedName) T {
	n.lock.Lock()
	defer n.lock.Unlock()
	return n.known[workload]
}

func (n *notes[T]) note(workload types.NamespacedName, found T) {
	n.lock.Lock()
	defer n.lock.Unlock()
	if n.known == nil {
		n.known = map[types.NamespacedName]T{}
	}
	n.known[workload] = found
}

func (n *notes[T]) forget(workload types.NamespacedName) {
	n.lock.Lock()
	defer n.lock.Unlock()
	delete(n.known, workload)
}
