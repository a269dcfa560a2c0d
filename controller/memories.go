package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace/engine"
)

// memories has what the leader remembers of each workload. Only one worker works on a workload at a time, so a memory itself needs no lock.
type memories struct{ of sync.Map }

// recall returns the memory of the workload, an empty one if there is none.
func (m *memories) recall(workload types.NamespacedName) *engine.Memory {
	memory, known := m.of.Load(workload) // an empty memory is made only where it is needed: each reconcile recalls several times
	if !known {
		memory, _ = m.of.LoadOrStore(workload, &engine.Memory{})
	}
	return memory.(*engine.Memory)
}

// forget forgets a workload that is gone.
func (m *memories) forget(workload types.NamespacedName) { m.of.Delete(workload) }
