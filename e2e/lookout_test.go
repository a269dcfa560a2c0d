package e2e

import (
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// lookout follows many Deployments and their pods, and keeps no events: there would be too many.
type lookout struct {
	mutex   sync.Mutex
	rolled  map[types.UID]rollout   // the newest one of each Deployment that `kubectl rollout status` calls a success
	unready map[types.UID]time.Time // since when each pod that is not Ready is so
	seconds float64                 // for which pods have not been Ready, all together
	out     map[types.UID]bool      // pods that are out of service
	most    int                     // of these at a time, since mostOut was last asked
}

// rollout says when a generation was rolled out.
type rollout struct {
	generation int64
	at         time.Time
}

// edited is an edit of a Deployment.
type edited struct {
	workload   types.UID
	generation int64
	at         time.Time
}

func newLookout() *lookout {
	return &lookout{rolled: map[types.UID]rollout{}, unready: map[types.UID]time.Time{}, out: map[types.UID]bool{}}
}

func (l *lookout) take(e event) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	switch object := e.object.(type) {
	case *appsv1.Deployment:
		if done, _ := rolledOut(object); done && l.rolled[object.UID].generation < object.Generation {
			l.rolled[object.UID] = rollout{object.Generation, e.at}
		}
	case *corev1.Pod:
		l.takePod(object.UID, unavailable(e, object), e.at)
		l.count(object.UID, unavailable(e, object))
	}
}

func (l *lookout) takePod(uid types.UID, misses bool, at time.Time) {
	began, missing := l.unready[uid]
	switch {
	case misses && !missing:
		l.unready[uid] = at
	case !misses && missing:
		l.seconds += at.Sub(began).Seconds()
		delete(l.unready, uid)
	}
}

// count notes whether the pod is out of service.
func (l *lookout) count(uid types.UID, out bool) {
	if !out {
		delete(l.out, uid)
		return
	}
	l.out[uid] = true
	l.most = max(l.most, len(l.out))
}

// mostOut returns how many pods were out of service at the worst moment since the last call.
func (l *lookout) mostOut() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	most := l.most
	l.most = len(l.out)
	return most
}

// sofar returns the seconds for which pods have not been Ready.
func (l *lookout) sofar() float64 {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.seconds
}

// waits returns how long each edit took until it was rolled out, and how many are not.
func (l *lookout) waits(edits []edited) (seconds []float64, missing int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, e := range edits {
		if r := l.rolled[e.workload]; r.generation >= e.generation {
			seconds = append(seconds, r.at.Sub(e.at).Seconds())
			continue
		}
		missing++
	}
	return seconds, missing
}
