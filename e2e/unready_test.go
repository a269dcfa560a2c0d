package e2e

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// notReady returns how long each pod existed and was not Ready, in seconds; natively from its creation on. Terminating pods, which only the
// native rollout has, do not count.
func notReady(events []event) []float64 {
	since, total := map[types.UID]time.Time{}, map[types.UID]float64{}
	for _, e := range events {
		pod, ok := e.object.(*corev1.Pod)
		if !ok {
			continue
		}
		began, missing := since[pod.UID]
		switch misses := unavailable(e, pod); {
		case misses && !missing:
			since[pod.UID] = e.at
		case !misses && missing:
			total[pod.UID] += e.at.Sub(began).Seconds()
			delete(since, pod.UID)
		}
	}
	return slices.Collect(maps.Values(total))
}

// unavailable reports whether the pod of an event exists and is not Ready.
func unavailable(e event, pod *corev1.Pod) bool {
	return e.what != watch.Deleted && alive(pod) && !ready(pod)
}

// worst returns how many pods existed and were not Ready at the worst moment, including new ones, and by how many fewer of the old pods
// were Ready than at first, when all were. The two worst moments may differ: a new pod that is not Ready does not reduce the number of
// Ready pods.
func worst(events []event, old []types.UID) (unready, fewer float64) {
	isReady := map[types.UID]bool{} // of all live pods
	for _, uid := range old {
		isReady[uid] = true
	}
	for _, e := range events {
		pod, ok := e.object.(*corev1.Pod)
		if !ok {
			continue
		}
		if isReady[pod.UID] = ready(pod); e.what == watch.Deleted || !alive(pod) {
			delete(isReady, pod.UID)
		}
		serving := len(slices.DeleteFunc(slices.Collect(maps.Values(isReady)), func(is bool) bool { return !is }))
		unready, fewer = max(unready, float64(len(isReady)-serving)), max(fewer, float64(len(old)-serving))
	}
	return unready, fewer
}
