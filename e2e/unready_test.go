package e2e

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// notReady is how long each pod was there and not Ready, in seconds: natively from its birth on. Terminating pods, which only the
// native rollout has, are not counted.
func notReady(events []event) []float64 {
	since, total := map[types.UID]time.Time{}, map[types.UID]float64{}
	for _, e := range events {
		pod, ok := e.object.(*corev1.Pod)
		if !ok {
			continue
		}
		began, missing := since[pod.UID]
		switch misses := e.what != watch.Deleted && alive(pod) && !ready(pod); {
		case misses && !missing:
			since[pod.UID] = e.at
		case !misses && missing:
			total[pod.UID] += e.at.Sub(began).Seconds()
			delete(since, pod.UID)
		}
	}
	return slices.Collect(maps.Values(total))
}

// worst is how many pods were there and not Ready at the worst moment, newborn ones too, and by how many fewer were Ready than these old ones,
// which all were at first. What is worst for the one is not always for the other: a newborn pod beside old ones is missed by nobody.
func worst(events []event, old []types.UID) (unready, fewer float64) {
	isReady := map[types.UID]bool{} // of all pods that live
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
