package member

import (
	"iter"
	"slices"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// WakeByPod wakes whoever follows the pods, of which there is one at least.
func WakeByPod(d *steps.Draft, pods iter.Seq[*State], every time.Duration, now time.Time) {
	woken := func(s *State) string { return s.Pod.Annotations[inplace.AnnotationWoken] }
	last := slices.MaxFunc(slices.Collect(pods), func(a, b *State) int { return times.TimeOf(woken(a)).Compare(times.TimeOf(woken(b))) })
	if value := d.Touched(woken(last), true, every, now); value != woken(last) {
		d.Step(last.Annotated(revisions.WhyWake, [2]string{inplace.AnnotationWoken, value}))
	}
}
