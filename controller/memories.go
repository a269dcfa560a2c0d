package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace/engine"
)

// memories has what the leader remembers of each workload. Only one worker works on a workload at a time, so a memory itself needs no lock.
type memories struct {
	lock sync.Mutex
	of   map[types.NamespacedName]*engine.Memory
}

// recall returns the memory of the workload, an empty one if there is none.
func (m *memories) recall(workload types.NamespacedName) *engine.Memory {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.of == nil {
		m.of = map[types.NamespacedName]*engine.Memory{}
	}
	if m.of[workload] == nil {
		m.of[workload] = &engine.Memory{}
	}
	return m.of[workload]
}

// forget forgets a workload that is gone.
func (m *memories) forget(workload types.NamespacedName) {
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.of, workload)
}
