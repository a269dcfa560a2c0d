package podstate_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
)

// TestNudgedTwiceInASecond: the annotation has whole seconds. A write of the value that it has is no event, so the native controller would
// not look.
func TestNudgedTwiceInASecond(t *testing.T) {
	pod := &corev1.Pod{}
	pod.ResourceVersion = "1"
	s := podstate.MarkedPod{Pod: pod}
	had := map[string]bool{}
	for _, after := range []time.Duration{0, 500 * time.Millisecond, 2 * time.Second} {
		if err := fixture.Apply(pod, s.Nudged(fixture.Start.Add(after)).Operations); err != nil {
			t.Fatal(err)
		}
		for key, value := range pod.Annotations {
			if had[value] {
				t.Errorf("after %s annotation %s is %s again", after, key, value)
			}
			had[value] = true
		}
	}
}
