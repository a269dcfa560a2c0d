package podstate

import (
	"slices"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// Nudged returns the step that nudges the native controller that watches the pod, at once. The same value again would be no event.
func (s *MarkedPod) Nudged(now time.Time) steps.PatchPod {
	at := inplace.FormatTime(now)
	if s.Pod.Annotations[inplace.AnnotationNudged] == at {
		at = inplace.FormatTime(now.Add(time.Second))
	}
	return s.Annotated(revisions.WhyNudge, [2]string{inplace.AnnotationNudged, at})
}

// NudgeByPod nudges the native controller that watches the pods, by an annotation on one of them. There must be at least one pod.
func NudgeByPod(d *steps.PlanBuilder, pods []*State, every time.Duration, now time.Time) {
	nudged := func(s *State) string { return s.Pod.Annotations[inplace.AnnotationNudged] }
	at := func(s *State) time.Time { return inplace.ParseTime(nudged(s)) }
	last := slices.MaxFunc(pods, func(a, b *State) int { return at(a).Compare(at(b)) })
	if value := d.NextNudge(nudged(last), every, now); value != nudged(last) {
		d.Step(last.Annotated(revisions.WhyNudge, [2]string{inplace.AnnotationNudged, value}))
	}
}
