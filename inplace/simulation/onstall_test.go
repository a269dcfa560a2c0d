package simulation

import (
	"os"
	"slices"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// undoStalled carries out an undo, and demands that the update had its time since the last edit, that no pause is on, and that no
// ReplicaSet is undone twice in turn.
func (w *world) undoStalled(s steps.UndoStalled) error {
	before := w.deployment()
	if before.ResourceVersion == s.Deployment.ResourceVersion {
		undone := w.rollout().UpdateRevision().Name
		switch had := w.now.Sub(w.rules.edited); {
		case before.Spec.Paused:
			w.violated("an undo of a paused rollout: %s", s.Why)
		case had < deployments.Deadline(before):
			w.violated("an undo %s after the last edit: %s", had, s.Why)
		case before.Annotations[inplace.AnnotationUndone] == undone:
			w.violated("%s is undone twice", undone)
		}
		w.rules.undone++
	}
	return patch(w, w.deployments, before.Name, s.Operations, func(_, _ *apps.Deployment) bool { return true })
}

// undoesInTime demands that a stalled update had its deadline since the leader last saw that something else kept it from progress.
func (s *stayput) undoesInTime(r deployments.Rollout, plan steps.Plan) {
	if s.keptBack(r) {
		s.heldBack = s.now
	}
	if slices.ContainsFunc(plan.Steps, func(step steps.Step) bool { _, is := step.(steps.UndoStalled); return is }) &&
		s.now.Sub(s.heldBack) < deployments.Deadline(r.Deployment) {
		s.violated("an undo %s after the update could only wait", s.now.Sub(s.heldBack))
	}
}

// keptBack reports whether all pods serve, and a pause, the partition or a PodDisruptionBudget keeps them as they are. Where images are
// pulled first, the update may wait for them as well.
func (s *stayput) keptBack(r deployments.Rollout) bool {
	newRS, old := r.UpdateRevision(), 0
	for _, pod := range r.Seen.Pods {
		available, _ := readiness.AvailableAt(pod, r.Deployment.Spec.MinReadySeconds, s.now)
		if !available || !readiness.Live(pod) || readiness.Out(pod) || readiness.MoveOf(pod).PartiallyPatched() {
			return r.Deployment.Spec.Paused
		}
		if newRS == nil || !metav1.IsControlledBy(pod, newRS) {
			old++
		}
	}
	wanted := int(apps.Desired(r.Deployment))
	switch {
	case r.Deployment.Spec.Paused:
		return true
	case s.settings.PrePullParallelism > 0 || s.pull.Parallel > 0 || len(r.Seen.Pods) != wanted || old == 0 || newRS == nil:
		return false
	case r.MaySurge(): // it may wait for surge pods, for which there may be no room
		return false
	}
	partition := r.Seen.Settings.Partition.Keeps(wanted) >= wanted
	return partition || slices.ContainsFunc(r.Seen.Disruption.Budgets, func(b *policyv1.PodDisruptionBudget) bool {
		return b.Status.DisruptionsAllowed == 0
	})
}

// TestUndoOnStallSimulation is TestSimulation where stalled updates are undone, with short deadlines, long waits, images that never start,
// pauses, partitions, and in every other world a PodDisruptionBudget. Only an update is undone that had its time.
func TestUndoOnStallSimulation(t *testing.T) {
	undone := 0
	runSeeds(t, func(seed int64, tracing bool) outcome {
		w := newWorld(t, seed, tracing)
		w.pull.Parallel, w.kubelet.skew = int(seed%3), skewOf(seed)
		w.settings.UndoOnStall = true
		w.calm()
		w.user("sets the deadline", func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = new(int32(5 + w.rng.Intn(15))) })
		if seed%2 == 0 {
			w.protect(w.rng.Intn(len(w.pods.objects) + 1))
		}
		w.rules.loose, w.rules.originals = w.rng.Intn(4) == 0, sorted(w.pods.objects)
		for range 100 + w.rng.Intn(300) {
			if w.failed == "" {
				w.tick(3)
			}
			if w.rng.Intn(100) == 0 {
				w.lull(5, 40)
			}
		}
		undone += w.rules.undone
		if w.disruptionController != nil {
			w.require(max(0, int(apps.Desired(w.deployment()))-1))
		}
		w.finish()
		return outcome{w.failed, w.describe(), w.trace}
	})
	if t.Logf("%d updates were undone", undone); undone == 0 && os.Getenv("STAYPUT_SEED") == "" {
		t.Error("no update was undone")
	}
}
