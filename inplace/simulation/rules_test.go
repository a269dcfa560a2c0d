package simulation

import (
	"maps"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/patches"
)

// listing lists annotations that may change in place.
func listing(entries string) func(*apps.Deployment) {
	return func(d *apps.Deployment) { d.Annotations[inplace.AnnotationInPlaceAnnotations] = entries }
}

func TestStepsOfAListedAnnotation(t *testing.T) {
	s := newLockstep(t, 2, listing("example.com/*"))
	before := sorted(s.pods.objects)
	s.edit("adds a note", fixture.App{Image: "v1", Note: "n1"})
	s.rest()
	s.expect("A marks", "B marks", "A 2 → 1", "move 1", "B 0 → 1", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
	s.intact(before)
	s.edit("takes it off", fixture.App{Image: "v1"})
	s.rest()
	s.intact(before)
}

// TestListChangedMidUpdate: for pods that have not moved, the current list of the workload decides.
func TestListChangedMidUpdate(t *testing.T) {
	s := newLockstep(t, 3, listing(fixture.NoteKey))
	before := sorted(s.pods.objects)
	s.edit("adds a note and sets the image", fixture.App{Image: "v2", Note: "n1"})
	s.until(s.moved(1))
	s.user("takes the annotation off the list", listing("example.com/other"))
	if decision := s.rollout().Decision(); decision.Held || decision.Reasons[0].Code != inplace.CodeAnnotation {
		t.Errorf("decision is %+v, want it native for the annotation", decision)
	}
	s.rest()
	s.checkEnd()
	for i, pod := range before {
		if there := s.pods.objects[pod.Name] != nil; there != (i == 0) {
			t.Errorf("pod %d is there: %t; want the first alone, which had moved", i+1, there)
		}
	}
	s.user("puts it back", listing(fixture.NoteKey))
	s.edit("undoes", fixture.App{Image: "v1"})
	now := sorted(s.pods.objects)
	s.rest()
	s.intact(now)
}

func TestDaemonStepsOfAListedAnnotation(t *testing.T) {
	f := fixture.NewFleet(t, 2, func(f *fixture.Fleet) { f.Seen.Rules.Annotations = []string{fixture.NoteKey} })
	f.Edit(fixture.App{Image: "v1", Note: "n1"})
	f.Rest()
	f.Expect("mark 2 true false", "p1 is 2 app=v1", "p2 is 2 app=v1", "mark 2 false false")
	if f.Seen.Pods[0].Annotations[fixture.NoteKey] != "n1" {
		t.Errorf("annotations are %v", f.Seen.Pods[0].Annotations)
	}
}

func TestDaemonListChangedMidUpdate(t *testing.T) {
	f := fixture.NewFleet(t, 2, func(f *fixture.Fleet) { f.Seen.Rules.Annotations = []string{fixture.NoteKey} })
	f.Edit(fixture.App{Image: "v2", Note: "n1"})
	for len(f.Steps) < 3 {
		f.Once()
	}
	f.Expect("mark 2 true false", "out p1", "p1 is 2 app=v2")
	f.Seen.Rules = inplace.Rules{}
	f.Rest()
	if f.Seen.Pods[1].Labels[inplace.LabelRevisionHash] != "1" || f.UpdateRevision().Labels[inplace.LabelUpdating] != "" {
		t.Errorf("p2 is %s, and the update revision's labels are %v", f.Seen.Pods[1].Labels[inplace.LabelRevisionHash], f.UpdateRevision().Labels)
	}
	for i, want := range []bool{true, false} { // the native controller may delete a pod that has just moved, because its cache does not know
		if held, why := f.HoldsDeletion(f.Seen.Pods[i]); held != want {
			t.Errorf("deletion of p%d is held: %t, %s", i+1, held, why.Message)
		}
	}
}

// TestUndoLeavesHowUpdatesAreMade: the list is not part of a revision, even if the ReplicaSet has a copy of it.
func TestUndoLeavesHowUpdatesAreMade(t *testing.T) {
	const list, other = inplace.AnnotationInPlaceAnnotations, "example.com/other"
	for name, test := range map[string]struct {
		before, copied, now map[string]string // now are the annotations after an edit; nil: after an undo
		image               string
		want                map[string]string
	}{
		"set since":                 {map[string]string{list: "a"}, nil, nil, "v1", map[string]string{list: "a"}},
		"changed since":             {map[string]string{list: "a"}, map[string]string{list: "b"}, nil, "v1", map[string]string{list: "a"}},
		"taken off since":           {nil, map[string]string{list: "b"}, nil, "v1", nil},
		"of another key, set since": {map[string]string{other: "a"}, nil, nil, "v1", nil},
		"of another key, taken off": {nil, map[string]string{other: "b"}, nil, "v1", map[string]string{other: "b"}},
		"an edit that takes it off": {map[string]string{list: "a", other: "a"}, nil, map[string]string{other: "a"}, "v1",
			map[string]string{other: "a"}},
		"to a template without a revision": {map[string]string{list: "a"}, nil, map[string]string{}, "v3", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: test.image})
			rs := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 0)
			fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
			rs.Annotations = test.copied
			r.Deployment.Annotations = deployments.Undone(test.before, rs.Annotations)
			if test.now != nil {
				r.Deployment.Annotations = test.now
			}
			if got := patches.Changed(r.Deployment.Annotations, r.Undone(test.before)); !maps.Equal(got, test.want) {
				t.Errorf("the annotations are %v, want %v", got, test.want)
			}
		})
	}
}
