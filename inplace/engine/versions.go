package engine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Versions are the resourceVersions that a workload's objects are known to have reached, by UID. A plan made on an older cache would take
// pods that are already being updated for untouched ones, and would make more pods unavailable than allowed. Versions are nil until
// Remember is called.
type Versions map[types.UID]string

// Known reports whether anything was remembered since the process started.
func (v Versions) Known() bool { return v != nil }

// Remember notes the versions that objects have reached. The workload is known then, even if there are no objects.
func (v *Versions) Remember(objects ...metav1.Object) {
	if *v == nil {
		*v = Versions{}
	}
	for _, object := range objects {
		(*v)[object.GetUID()] = object.GetResourceVersion()
	}
}

// Lagging returns an object of which the cache shows an older version than is known; nil if there is none. It forgets the versions that the
// cache shows, and objects that the cache no longer has: Stayput only writes to objects that the cache had, so the cache has seen their
// deletion.
func (v *Versions) Lagging(cached []metav1.Object) metav1.Object {
	if *v == nil {
		return nil
	}
	ahead := Versions{}
	var late metav1.Object
	for _, object := range cached {
		version := (*v)[object.GetUID()]
		// These are numbers on every conformant cluster since 1.35, and what is no number is not older. On other clusters only the guard of each
		// patch protects against an outdated cache.
		if order, _ := resourceversion.CompareResourceVersion(object.GetResourceVersion(), version); order < 0 {
			ahead[object.GetUID()], late = version, object
		}
	}
	*v = ahead
	return late
}
