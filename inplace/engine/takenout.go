package engine

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// TakenOut has when the leader first took pods out of service that it has not patched since, by UID. If no webhook answers, their kubelets
// put them back every 10 s, and a long drain would never end. So such a pod is drained anew for a limited time, and then restarts while it
// serves. A new leader counts anew.
type TakenOut map[types.UID]time.Time

// next returns what is remembered of those pods.
func (t TakenOut) next(pods []*corev1.Pod) TakenOut {
	next := TakenOut{}
	for _, pod := range pods {
		if at, has := t[pod.UID]; has {
			next[pod.UID] = at
		}
	}
	return next
}

// after returns what is remembered after a step. A pod whose containers stop, or that is put back, is forgotten. Other patches of a pod
// come during its drain.
func (t TakenOut) after(step steps.Step, now time.Time) TakenOut {
	if t == nil {
		t = TakenOut{}
	}
	switch s := step.(type) {
	case steps.SetReady:
		if s.Out {
			t[s.Pod.UID] = cmp.Or(t[s.Pod.UID], now)
		} else {
			delete(t, s.Pod.UID)
		}
	case steps.PatchPod:
		if s.Stops {
			delete(t, s.Pod.UID)
		}
	}
	return t
}

// undone reports whether the pod was put back into service although the leader had taken it out.
func (t TakenOut) undone(pod *corev1.Pod) bool {
	_, taken := t[pod.UID]
	return taken && !readiness.Out(pod)
}

// staysIn returns why the pod serves until its containers stop, one clause; empty if it is taken out of service before.
func (u *Update) staysIn(pod *corev1.Pod) string {
	if of := u.seen.Endpoints[pod.UID].LastOf; of != "" && len(u.hooks.On(pod)) == 0 { // hooks are told by its Ready
		return "it is the last endpoint of Service " + of
	}
	tried, _ := inplace.Since(u.seen.TakenOut[pod.UID], u.drainTakes(), u.seen.Now)
	if u.seen.TakenOut.undone(pod) && tried {
		return "its kubelet puts it back into service, and no webhook is asked about that"
	}
	return ""
}

// drainTakes returns how long a pod may be out of service before its containers stop.
func (u *Update) drainTakes() time.Duration {
	takes := u.seen.Settings.Drain + podstate.DrainPatience
	if len(u.hooks) > 0 {
		takes += u.seen.Settings.PreRestartTimeout
	}
	return takes
}
