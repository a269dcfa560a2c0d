package inplace

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestOpenGate(t *testing.T) {
	none := func(pod *corev1.Pod) { pod.Status.Conditions = nil }
	for name, change := range map[string]func(*corev1.Pod){
		"no conditions yet":  none,
		"only others":        func(pod *corev1.Pod) { none(pod); unready(pod) },
		"closed":             drained,
		"open as it was set": func(*corev1.Pod) {},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture(1, app{image: "v1"})
			pod := r.pod("p", r.replicaSet("a", app{image: "v1"}, 1), change)
			others := len(pod.Status.Conditions)
			if condition(pod, ConditionServing) != nil {
				others--
			}
			step := OpenGate(pod, start)
			if err := apply(pod, step.Operations); err != nil {
				t.Fatal(err)
			}
			if !isTrue(pod, ConditionServing) || len(pod.Status.Conditions) != others+1 {
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
		"open":         {func(*corev1.Pod) {}, false},
		"closed by us": {drained, false},
		"no gate":      {ungated, false},
		"new":          {func(pod *corev1.Pod) { pod.Status.Conditions = nil }, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fixture(1, app{image: "v1"})
			if got := Unopened(r.pod("p", r.replicaSet("a", app{image: "v1"}, 1), c.change)); got != c.want {
				t.Errorf("unopened is %v", got)
			}
		})
	}
}
