package write

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Memory holds, for each workload of one kind, the versions its objects are known to have reached. A plan made on a cache that is older
// would count pods that are already on their way as untouched, and take down more than allowed.
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

// Remember notes the versions objects have reached, and that the workload is known even if there are none.
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

// Forget drops a workload that is gone.
func (m *Memory) Forget(workload types.NamespacedName) {
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.workloads, workload)
}

// Lagging returns an object which the cache shows older than it is known to be, nil if it shows all of them. What it shows is
// forgotten, and so is what it no longer has: we only write what it had, so it has seen that deleted.
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

// older compares resourceVersions, which are numbers on every conformant cluster since 1.35. Elsewhere the
// guard of each patch is what protects.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
