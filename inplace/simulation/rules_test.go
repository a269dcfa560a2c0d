package simulation

import (
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// listing has the workload name annotations that may change in place.
func listing(entries string) func(*apps.Deployment) {
	return func(d *apps.Deployment) { d.Annotations[inplace.AnnotationInPlaceAnnotations] = entries }
}

func TestStepsOfAListedAnnotation(t *testing.T) {
	s := newScene(t, 2, listing("example.com/*"), false)
	before := sorted(s.pods.objects)
	s.edit("adds a note", app{image: "v1", note: "n1"})
	s.rest()
	s.expect("A marks", "B marks", "A 2 → 1", "move 1", "B 0 → 1", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
	s.intact(before)
	s.edit("takes it off", app{image: "v1"})
	s.rest()
	s.intact(before)
}

// TestListChangedHalfway: what the workload says now decides about the pods that have not moved.
func TestListChangedHalfway(t *testing.T) {
	s := newScene(t, 3, listing(noted), false)
	before := sorted(s.pods.objects)
	s.edit("adds a note and sets the image", app{image: "v2", note: "n1"})
	s.until(s.moved(1))
	s.user("takes the annotation off the list", listing("example.com/other"))
	if verdict := s.rollout().Verdict(); verdict.Held || verdict.Reasons[0].Code != inplace.CodeAnnotation {
		t.Errorf("verdict is %+v, want it native for the annotation", verdict)
	}
	s.rest()
	s.checkEnd()
	for i, pod := range before {
		if there := s.pods.objects[pod.Name] != nil; there != (i == 0) {
			t.Errorf("pod %d is there: %t; want the first alone, which had moved", i+1, there)
		}
	}
	s.user("puts it back", listing(noted))
	s.edit("undoes", app{image: "v1"})
	now := sorted(s.pods.objects)
	s.rest()
	s.intact(now)
}

func TestDaemonStepsOfAListedAnnotation(t *testing.T) {
	f := newFleet(t, 2, func(f *fleet) { f.Rules.Annotations = []string{noted} })
	f.edit(app{image: "v1", note: "n1"})
	f.rest()
	f.expect("mark 2 true false", "p1 is 2 app=v1", "p2 is 2 app=v1", "mark 2 false false")
	if f.Pods[0].Annotations[noted] != "n1" {
		t.Errorf("annotations are %v", f.Pods[0].Annotations)
	}
}

func TestDaemonListChangedHalfway(t *testing.T) {
	f := newFleet(t, 2, func(f *fleet) { f.Rules.Annotations = []string{noted} })
	f.edit(app{image: "v2", note: "n1"})
	for len(f.steps) < 4 {
		f.once()
	}
	f.expect("mark 2 true false", "close p1", "p1 is 2 app=v2", "open p1")
	f.Rules = inplace.Rules{}
	f.rest()
	if f.Pods[1].Labels[inplace.LabelRevisionHash] != "1" || f.Target().Labels[inplace.LabelSettling] != "" {
		t.Errorf("p2 is %s, and the target's labels are %v", f.Pods[1].Labels[inplace.LabelRevisionHash], f.Target().Labels)
	}
	for i, want := range []bool{true, false} { // what has just moved may be deleted by a cache that does not know
		if held, why := f.HoldsDeletion(f.Pods[i]); held != want {
			t.Errorf("deletion of p%d is held: %t, %s", i+1, held, why.Message)
		}
	}
}
