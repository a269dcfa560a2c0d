package simulation

import (
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// The user wants no pod to be replaced. Whatever becomes impossible after an edit was accepted, no pod is, as long as a manager leads. When
// pods may be replaced again, the update ends in the right state.

// accept makes an edit as the webhooks let it pass: in mode in-place-only they reject all that needs new pods, and they record what they
// decided.
func (w *world) accept(does string, a fixture.App) {
	r := w.rollout()
	r.Deployment = r.Deployment.DeepCopy()
	before := r.Deployment.Spec.Template
	r.Deployment.Spec.Template = a.Template()
	decided := r.DecideEdit(before)
	if !decided.InPlace() {
		return
	}
	w.user(does, func(d *apps.Deployment) {
		d.Spec.Template, d.Annotations[inplace.AnnotationDecision] = a.Template(), edit.InPlacePrefix+"restarts app"
	})
}

// hinder makes an update impossible, or possible again. Writes of the marks are not among what is refused: without them nothing is held for
// longer than a minute.
func (w *world) hinder() {
	switch w.rng.Intn(8) {
	case 0, 1:
		w.accept("edits the template", w.randomEdit())
	case 2:
		if sets := sorted(w.sets.objects); !w.deployment().Spec.Paused {
			w.accept("undoes", appOf(sets[w.rng.Intn(len(sets))].Spec.Template))
		}
	case 3:
		w.refusing = !w.refusing
		w.stayput.stale = true
		w.logf("new pods are refused: %v", w.refusing)
	case 4:
		resource := []string{"pods", "pods/status", "deployments/status"}[w.rng.Intn(3)]
		w.answers[resource] = []error{nil, nil, errRefused, errFailing}[w.rng.Intn(4)]
		w.logf("our writes to %s are answered: %v", resource, w.answers[resource])
	case 5:
		w.cramp()
	case 6:
		w.user("changes the list of annotations", func(d *apps.Deployment) {
			d.Annotations[inplace.AnnotationInPlaceAnnotations] = []string{"example.com/*", "example.com/other"}[w.rng.Intn(2)]
		})
	case 7:
		w.lull(1, 200)
	}
}

// replaced demands that every pod is there that was when the user said so.
func (w *world) replaced() {
	if w.rules.belated {
		return
	}
	for _, original := range w.rules.originals {
		if pod := w.pods.objects[original.Name]; pod == nil || pod.DeletionTimestamp != nil {
			w.violated("%s was replaced", original.Name)
		}
	}
}

func simulateWaiting(t testing.TB, seed int64, tracing bool) *world {
	w := newWorld(t, seed, tracing)
	w.mirror = seed%4 == 1
	w.sized = w.sized || seed%3 == 0
	w.calm()
	w.rules.loose = true
	w.rules.originals = sorted(w.pods.objects)
	if w.closed = seed%2 == 0; !w.closed {
		w.mode = inplace.ModeInPlaceOnly
	}
	w.stayput.stale = true
	for range 100 + w.rng.Intn(400) {
		if w.failed == "" {
			w.tick(0)
		}
		if w.rng.Intn(8) == 0 && w.failed == "" {
			w.hinder()
		}
		w.replaced()
	}
	w.logf("pods may be replaced again")
	w.closed, w.mode, w.refusing, w.rules.originals = false, inplace.ModeInPlace, false, nil
	clear(w.answers)
	w.stayput.stale = true
	w.finish()
	return w
}

// TestNoPodIsReplaced checks that at every moment, for a closed window and for the mode in-place-only.
func TestNoPodIsReplaced(t *testing.T) {
	runSeeds(t, func(seed int64, tracing bool) outcome {
		w := simulateWaiting(t, seed, tracing)
		return outcome{w.failed, w.describe(), w.trace}
	})
}
