package simulation

import (
	"fmt"
	"testing"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestBudgetSimulation is TestSimulation with a PodDisruptionBudget, whose requirement changes, and from which evictions take, too. No step
// of Stayput leaves fewer healthy pods than it requires. In the end it allows one disruption, and the update completes.
func TestBudgetSimulation(t *testing.T) {
	runSeeds(t, func(seed int64, tracing bool) outcome {
		w := newWorld(t, seed, tracing)
		w.pull.Parallel, w.kubelet.skew = int(seed%3), skewOf(seed)
		w.calm()
		w.protect(w.rng.Intn(len(w.pods.objects) + 1))
		w.rules.loose, w.rules.originals = w.rng.Intn(3) == 0, sorted(w.pods.objects)
		w.logf("loose %v, strategy %+v", w.rules.loose, w.deployment().Spec.Strategy)
		for range 100 + w.rng.Intn(500) {
			if w.failed == "" {
				w.tick(3)
			}
		}
		w.require(max(0, int(apps.Desired(w.deployment()))-1))
		w.finish()
		return outcome{w.failed, w.describe(), w.trace}
	})
}

// TestStatefulSetsBudgetSimulation is the same for StatefulSets of three pods, of which up to three may be unavailable, with both pod
// management policies. No pod is deleted for the update.
func TestStatefulSetsBudgetSimulation(t *testing.T) {
	forEnsembles(t, func(e *ensemble) string {
		fixture.Rolling(0, fmt.Sprint(1+e.random.IntN(3)))(e.Members)
		p := e.protect(e.random.IntN(5))
		wrong := func() string {
			if len(e.deleted) > 0 {
				return fmt.Sprintf("deleted: %q", e.deleted)
			}
			return p.wrong
		}
		for _, image := range []string{"v2", "bad", "v3"}[e.random.IntN(3):] {
			e.trace("image %s", image)
			e.Edit(fixture.App{Image: image})
			for range e.random.IntN(150) {
				e.act()
				if wrong := e.check() + wrong(); wrong != "" {
					return wrong
				}
			}
		}
		p.calm()
		if wrong := e.until(3000, wrong); wrong != "" {
			return wrong
		}
		return e.comesToRest(1000)
	})
}

// TestDaemonBudgetSimulation is the same for DaemonSets.
func TestDaemonBudgetSimulation(t *testing.T) {
	runSeeds(t, func(seed int64, tracing bool) outcome {
		w := newDaemonWorld(t, seed, tracing)
		w.rules.loose = true // the first rollout creates pods
		w.calm()
		w.protect(w.rng.Intn(len(w.pods.objects) + 1))
		w.rules.loose = w.rng.Intn(3) == 0
		for range 200 + w.rng.Intn(800) {
			if w.failed == "" {
				w.tick(2)
			}
		}
		w.require(max(0, len(w.pods.objects)-1))
		w.finish()
		return outcome{w.failed, w.describe(), w.trace}
	})
}
