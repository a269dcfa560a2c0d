package podstate

import (
	"fmt"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
)

// Another controller may have something to do before the containers of a pod restart, for example to deregister the pod from a load
// balancer. It sets an annotation on the pod beforehand, and removes it when that is done (inplace.Hooks). It knows that the time has come
// by the pod's condition Ready, which is False with reason readiness.ReasonUpdating. So only a pod that is taken out of service is held.
// The last endpoint of a Service, or a pod in which only auxiliary containers restart, serves until they do: nothing tells the other
// controller before.
//
// Hooks hold a pod for a limited time, because natively nothing waits for other controllers. The time begins when the pod is taken out of
// service. Its condition says when that was, so the next leader knows it, too. The patch names the version of the pod, so an annotation
// that came a moment ago counts. When the pod is back in service, for example because of an undo, the hooks hold nothing any more.

// Hold sets which hooks the pod has, and for how much longer they hold it.
func (s *State) Hold(hooks inplace.Hooks, timeout time.Duration, now time.Time) {
	on := hooks.On(s.Pod)
	if len(on) == 0 || timeout == 0 || !readiness.Out(s.Pod) {
		return
	}
	s.Hooks = on
	if out := readiness.OutAt(s.Pod); !out.After(now.Add(clockSkew)) {
		_, s.HeldFor = inplace.Since(out, timeout, now)
	}
	if s.HeldFor == 0 {
		s.TimedOut = fmt.Sprintf("pod %s goes on with %s: not removed within %s", s.Pod.Name, s.Hooks, timeout)
	}
}

// clockSkew is by how much clocks of two leaders may differ. A time later than that, another client has forged.
const clockSkew = 15 * time.Second

// awaitsPatch returns what the pod, which is out of service, waits for.
func (s *State) awaitsPatch() string {
	if s.HeldFor == 0 {
		return "its drain"
	}
	return fmt.Sprintf("%s to be removed, for %s more at most", s.Hooks, wholeSeconds(s.HeldFor))
}

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
