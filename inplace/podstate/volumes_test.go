package podstate_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// TestVolumesFresh: a container that restarts for a changed ConfigMap must not start with the old content, and each edit may come with a
// change of one.
func TestVolumesFresh(t *testing.T) {
	restart := edit.ContainerChanges{{Container: "app", Restart: true}}
	written := func(ago time.Duration, hash string) string {
		return inplace.FormatTime(fixture.Start.Add(-ago)) + "-" + hash
	}
	for name, c := range map[string]struct {
		containers edit.ContainerChanges
		annotation string
		fresh      bool
		writes     bool
		after      time.Duration
	}{
		"another image":                   {containers: fixture.Reimaged("app", "v2").Containers, fresh: true},
		"not written":                     {containers: restart, writes: true},
		"written now":                     {restart, written(0, "b"), false, false, inplace.LookAgain},
		"written before":                  {restart, written(inplace.LookAgain, "b"), true, false, 0},
		"written too long ago":            {restart, written(time.Minute, "b"), false, true, 0},
		"written for another edit":        {restart, written(inplace.LookAgain, "a"), false, true, 0},
		"written for another edit before": {restart, written(time.Hour, "a"), false, true, 0},
	} {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{inplace.AnnotationRestarts: c.annotation}
		s := podstate.Work{MarkedPod: podstate.MarkedPod{Pod: pod, PodRevision: podstate.PodRevision{UpdateHash: "b"}}, Containers: c.containers}
		plan := &steps.PlanBuilder{}
		fresh := s.VolumesFresh(plan, fixture.Start)
		if fresh != c.fresh || len(plan.Result.Steps) > 0 != c.writes || plan.Result.After != c.after {
			t.Errorf("%s: fresh %t, and again in %s after %v", name, fresh, plan.Result.After, plan.Result.Steps)
		}
	}
}
