package write

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Memory has, for each workload of one kind, the versions that its objects are known to have reached. A plan made on an
// older cache would take pods that are already being updated for untouched ones, and would make more pods unavailable
// than allowed.
type Memory struct {
	lock      sync.Mutex
	workloads map[types.NamespacedName]map[types.UID]string
}

// Knows reports whether anything was remembered for this workload since the process started.
func (m *Memory) Knows(workload types.NamespacedName) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.workloads[workload] != nil
}

// Remember notes the versions that objects have reached. The workload is then known, even if there are no objects.
func (m *Memory) Remember(workload types.NamespacedName, objects ...client.Object) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.workloads == nil {
		m.workloads = map[types.NamespacedName]map[types.UID]string{}
	}
	if m.workloads[workload] == nil {
		m.workloads[workload] = map[types.UID]string{}
	}
	for _, object := range objects {
		m.workloads[workload][object.GetUID()] = object.GetResourceVersion()
	}
}

// Forget forgets a workload that is gone.
func (m *Memory) Forget(workload types.NamespacedName) {
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.workloads, workload)
}

// Lagging returns an object of which the cache shows an older version than is known; nil if there is none. It forgets
// the versions that the cache shows. It also forgets objects that the cache no longer has. Stayput only writes to
// objects that the cache had, so the cache has seen their deletion.
func (m *Memory) Lagging(workload types.NamespacedName, cached []client.Object) client.Object {
	m.lock.Lock()
	defer m.lock.Unlock()
	known := m.workloads[workload]
	ahead := map[types.UID]string{}
	var late client.Object
	for _, object := range cached {
		if version, ok := known[object.GetUID()]; ok && older(object.GetResourceVersion(), version) {
			ahead[object.GetUID()], late = version, object
		}
	}
	if known != nil {
		m.workloads[workload] = ahead
	}
	return late
}

// older compares resourceVersions, which are numbers on every conformant cluster since 1.35. On other clusters only the
// guard of each patch protects against an outdated cache.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
