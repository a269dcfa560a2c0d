package podstate_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

func TestOpenGate(t *testing.T) {
	none := func(pod *corev1.Pod) { pod.Status.Conditions = nil }
	for name, change := range map[string]func(*corev1.Pod){
		"no conditions yet":  none,
		"only others":        func(pod *corev1.Pod) { none(pod); fixture.Unready(pod) },
		"closed":             fixture.Drained,
		"open as it was set": func(*corev1.Pod) {},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), change)
			others := len(pod.Status.Conditions)
			if apps.Condition(pod, inplace.ConditionServing) != nil {
				others--
			}
			step := podstate.OpenGate(pod, false, fixture.Start)
			if err := fixture.Apply(pod, step.Operations); err != nil {
				t.Fatal(err)
			}
			if !apps.IsTrue(pod, inplace.ConditionServing) || len(pod.Status.Conditions) != others+1 {
				t.Errorf("conditions are %+v", pod.Status.Conditions)
			}
		})
	}
}

func TestUnopened(t *testing.T) {
	cases := map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"open":              {func(*corev1.Pod) {}, false},
		"closed by Stayput": {fixture.Drained, false},
		"no gate":           {fixture.Ungated, false},
		"new":               {func(pod *corev1.Pod) { pod.Status.Conditions = nil }, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			if got := readiness.Unopened(fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), c.change)); got != c.want {
				t.Errorf("unopened is %v", got)
			}
		})
	}
}

// TestReopening: after its gate opened, a pod is not Ready until its kubelet reports again, because its gate was closed before. If it were
// patched then, it could be Ready for a moment.
func TestReopening(t *testing.T) {
	seconds := func(n time.Duration) time.Time { return fixture.Start.Add(n * time.Second) }
	condition := func(kind corev1.PodConditionType, is corev1.ConditionStatus, reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: is, Reason: reason, LastTransitionTime: metav1.NewTime(fixture.Start)}
	}
	opened := condition(inplace.ConditionServing, corev1.ConditionTrue, readiness.ReasonReopened)
	keptOut := condition(corev1.PodReady, corev1.ConditionFalse, readiness.ReasonGatesNotReady)
	for name, c := range map[string]struct {
		serving, ready corev1.PodCondition
		now            time.Time
		want           bool
		wait           time.Duration
	}{
		"a moment ago":                 {opened, keptOut, seconds(1), true, 2 * time.Second},
		"long ago":                     {opened, keptOut, seconds(3), false, 0},
		"its kubelet has seen it":      {opened, condition(corev1.PodReady, corev1.ConditionTrue, ""), seconds(1), false, 0},
		"its containers are not ready": {opened, condition(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady"), seconds(1), false, 0},
		"closed": {condition(inplace.ConditionServing, corev1.ConditionFalse, readiness.ReasonUpdating), keptOut,
			seconds(1), false, 0},
		"open since its creation": {condition(inplace.ConditionServing, corev1.ConditionTrue, readiness.ReasonCreated), keptOut,
			seconds(1), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1))
			pod.Status.Conditions = []corev1.PodCondition{c.serving, c.ready}
			if got, wait := readiness.Reopening(pod, c.now); got != c.want || wait != c.wait {
				t.Errorf("reopening is %v for %s, want %v for %s", got, wait, c.want, c.wait)
			}
		})
	}
}

func TestAwaitsGate(t *testing.T) {
	for name, c := range map[string]struct {
		conditions []corev1.PodCondition
		want       bool
	}{
		"no conditions yet":            {nil, false},
		"its kubelet has not reported": {[]corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}, false},
		"its kubelet has reported":     {[]corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionFalse}}, true},
		"there is no node for it":      {[]corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}, true},
		"it was opened at creation": {[]corev1.PodCondition{{Type: corev1.ContainersReady},
			{Type: inplace.ConditionServing, Status: corev1.ConditionTrue}}, false},
		"the leader has closed it": {[]corev1.PodCondition{{Type: corev1.ContainersReady}, {Type: inplace.ConditionServing}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1),
				func(pod *corev1.Pod) { pod.Status.Conditions = c.conditions })
			if got := readiness.AwaitsGate(pod); got != c.want {
				t.Errorf("it awaits its gate: %t", got)
			}
		})
	}
}

func TestKeptOut(t *testing.T) {
	closedAt := func(ago time.Duration, ready corev1.ConditionStatus, why string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			fixture.ConditionIs(inplace.ConditionServing, corev1.ConditionFalse)(pod)
			apps.Condition(pod, inplace.ConditionServing).LastTransitionTime = metav1.NewTime(fixture.Start.Add(-ago))
			fixture.ConditionIs(corev1.PodReady, ready)(pod)
			apps.Condition(pod, corev1.PodReady).Reason = why
		}
	}
	cases := map[string]struct {
		change func(*corev1.Pod)
		want   bool
		wait   time.Duration
	}{
		"open":                              {func(*corev1.Pod) {}, false, 0},
		"open, containers not ready":        {fixture.Unready, false, 0},
		"closed, still Ready":               {closedAt(time.Hour, corev1.ConditionTrue, ""), false, 0},
		"closed, not Ready for that":        {closedAt(0, corev1.ConditionFalse, readiness.ReasonGatesNotReady), true, 0},
		"closed just now, not Ready before": {closedAt(time.Second, corev1.ConditionFalse, "ContainersNotReady"), false, 2 * time.Second},
		"closed long ago, not Ready before": {closedAt(3*time.Second, corev1.ConditionFalse, "ContainersNotReady"), true, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			got, wait := readiness.KeptOut(fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), c.change), fixture.Start)
			if got != c.want || wait != c.wait {
				t.Errorf("out of service is %v, to be looked at again in %s", got, wait)
			}
		})
	}
}

func TestGateUnseen(t *testing.T) {
	moved := func(status corev1.ConditionStatus, why string, ago time.Duration, ready corev1.ConditionStatus) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			fixture.ConditionIs(inplace.ConditionServing, status)(pod)
			gate := apps.Condition(pod, inplace.ConditionServing)
			gate.Reason, gate.LastTransitionTime = why, metav1.NewTime(fixture.Start.Add(-ago))
			fixture.ConditionIs(corev1.PodReady, ready)(pod)
		}
	}
	cases := map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"created just now":            {moved(corev1.ConditionTrue, readiness.ReasonCreated, 0, corev1.ConditionTrue), false},
		"closed, still Ready":         {moved(corev1.ConditionFalse, readiness.ReasonUpdating, time.Minute, corev1.ConditionTrue), true},
		"closed, no longer Ready":     {moved(corev1.ConditionFalse, readiness.ReasonUpdating, time.Minute, corev1.ConditionFalse), false},
		"opened again just now":       {moved(corev1.ConditionTrue, readiness.ReasonReopened, time.Second, corev1.ConditionTrue), true},
		"opened again some while ago": {moved(corev1.ConditionTrue, readiness.ReasonReopened, 3*time.Second, corev1.ConditionTrue), false},
		"no gate":                     {fixture.Ungated, false},
		"not opened yet":              {func(pod *corev1.Pod) { pod.Status.Conditions = nil }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			if got := podstate.GateUnseen(fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), c.change),
				fixture.Start); got != c.want {
				t.Errorf("gateUnseen is %v", got)
			}
		})
	}
}
