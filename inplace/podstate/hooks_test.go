package podstate_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
)

// TestForHowLongHooksHoldAPod: a pod that goes on too soon restarts while a load balancer still sends clients to it, and one that is held
// for ever stops the update.
func TestForHowLongHooksHoldAPod(t *testing.T) {
	const timeout = time.Minute
	hooked := func(changes ...func(*corev1.Pod)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.PreRestartHookPrefix+"lb", "")
			for _, change := range changes {
				change(pod)
			}
		}
	}
	outAt := func(d time.Duration) func(*corev1.Pod) { return fixture.OutSince(fixture.Start.Add(d)) }
	timedOut := "pod p goes on with annotation pre-restart.hook.stayput.dev/lb: not removed within 1m0s"
	for name, c := range map[string]struct {
		change   func(*corev1.Pod)
		hooks    string
		timeout  time.Duration
		heldFor  time.Duration
		timedOut string
	}{
		"serves":                                  {hooked(), "lb", timeout, 0, ""},
		"taken out just now":                      {hooked(fixture.Out), "lb", timeout, timeout, ""},
		"taken out before":                        {hooked(outAt(-20 * time.Second)), "lb", timeout, 40 * time.Second, ""},
		"taken out too long ago":                  {hooked(outAt(-timeout)), "lb", timeout, 0, timedOut},
		"its hook is removed":                     {fixture.Out, "lb", timeout, 0, ""},
		"its hook is none of the workload":        {hooked(fixture.Out), "dns", timeout, 0, ""},
		"the workload has no hooks":               {hooked(fixture.Out), "", timeout, 0, ""},
		"hooks hold nothing":                      {hooked(fixture.Out), "lb", 0, 0, ""},
		"the clock of another leader was ahead":   {hooked(outAt(15 * time.Second)), "lb", timeout, timeout + 15*time.Second, ""},
		"another client says it leaves in future": {hooked(outAt(time.Hour)), "lb", timeout, 0, timedOut},
	} {
		r := fixture.New(1, fixture.App{Image: "v1"})
		pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), c.change)
		s := &podstate.State{Work: podstate.Work{MarkedPod: podstate.MarkedPod{Pod: pod}}}
		s.Hold(inplace.HooksOf(map[string]string{inplace.AnnotationPreRestartHooks: c.hooks}), c.timeout, fixture.Start)
		if s.HeldFor != c.heldFor || s.TimedOut != c.timedOut {
			t.Errorf("%s: held for %s, want %s, and it says %q", name, s.HeldFor, c.heldFor, s.TimedOut)
		}
		if held := len(s.Hooks) > 0; held != (c.heldFor > 0 || c.timedOut != "") {
			t.Errorf("%s: its hooks are %v", name, s.Hooks)
		}
	}
}
