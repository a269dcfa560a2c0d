package engine_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/revisions"
)

// TestUntouched: Stayput does not look at workloads that it does not manage, unless it has left something there: that is removed.
func TestUntouched(t *testing.T) {
	annotate := func(key, value string) func(*deployments.Rollout) {
		return func(r *deployments.Rollout) { r.Seen.Pods[0].Annotations = map[string]string{key: value} }
	}
	for name, test := range map[string]struct {
		change    func(*deployments.Rollout)
		untouched bool
	}{
		"not managed":              {func(*deployments.Rollout) {}, true},
		"opted out":                {func(r *deployments.Rollout) { r.Seen.Mode = inplace.ModeNative }, true},
		"managed":                  {func(r *deployments.Rollout) { r.Seen.Mode = inplace.ModeInPlace }, false},
		"it has a pre-pull pod":    {func(r *deployments.Rollout) { r.Seen.Pull.PrePullPods = []*corev1.Pod{{}} }, false},
		"its update fell back":     {func(r *deployments.Rollout) { r.Seen.Fallback = revisions.Fallback{Hash: "h"} }, false},
		"a pod is out of service":  {func(r *deployments.Rollout) { fixture.Out(r.Seen.Pods[0]) }, false},
		"a pod was patched":        {annotate(inplace.AnnotationMove, "{}"), false},
		"a pod was told to wait":   {annotate(inplace.AnnotationRestarted, "waiting app: for an update"), false},
		"a pod asks for a restart": {annotate(inplace.AnnotationRestartContainers, "app"), true},
		"a revision is marked": {
			func(r *deployments.Rollout) { r.ReplicaSets[0].Labels[inplace.LabelUpdating] = fixture.Begun }, false},
	} {
		r, _ := fixture.ToV2()
		r.Seen.Mode = inplace.ModeNone
		test.change(r)
		if untouched := engine.Untouched(r); untouched != test.untouched {
			t.Errorf("%s: untouched %t", name, untouched)
		}
	}
}
