package simulation

import (
	"strings"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// runPrePullPods lets pre-pull pods pull. A change makes the leader plan again.
func (w *world) runPrePullPods() {
	if w.pull.Run() {
		w.version++
		w.stayput.stale = true
	}
}

// stopsForNothing demands that no container stops for an image that does not exist.
func (w *world) stopsForNothing(plan steps.Plan) {
	newRS, _ := plan.Decision.UpdateRevision.(*apps.ReplicaSet)
	if w.pull.Parallel == 0 || newRS == nil || !strings.Contains(fixture.TemplateImages(newRS.Spec.Template), "bad") {
		return
	}
	for _, step := range plan.Steps {
		if ready, ok := step.(steps.SetReady); ok && ready.Out && !readiness.Removing(ready.Pod) && ready.Pod.Spec.NodeName != "" &&
			!strings.Contains(fixture.Images(ready.Pod), "bad") {
			w.violated("%s is drained for an image that does not exist", ready.Pod.Name)
		}
	}
}
