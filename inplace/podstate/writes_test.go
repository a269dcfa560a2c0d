package podstate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

const last = "it is the last endpoint of Service web"

// TestWrites tests what is written, in order. The last write moves the pod. Only a pod that serves until its containers stop has another
// write before it.
func TestWrites(t *testing.T) {
	restart := fixture.Reimaged("app", "v2").Containers
	label := []patches.EntryChange{{Key: "version", Value: "2"}}
	labels := []patches.EntryChange{label[0], {Key: "chart", Removing: true}}
	read := edit.ReadKeys{Labels: []string{"chart"}}
	for name, c := range map[string]struct {
		needs   edit.Change
		staysIn string
		byLabel bool
		updated bool
		want    string
	}{
		"nothing but the move": {edit.Change{}, last, false, false, "moved: no change"},
		"labels":               {edit.Change{Labels: label}, last, false, false, "moved: no restart, label version"},
		"a restart":            {edit.Change{Containers: restart, Labels: label}, "", false, false, "moved: restarts app, label version"},
		"a restart of a pod that stays in service": {edit.Change{Containers: restart, Labels: label}, last, false, false,
			"partial: restarts app; moved: no restart, label version"},
		"the same, and the revision is a label": {edit.Change{Containers: restart, Labels: label}, last, true, false,
			"partial: restarts app, label version; moved: no change"},
		"a restart for a variable": {edit.Change{Containers: restart, Labels: labels, Read: read}, "", false, false,
			"moved: restarts app, label version, label chart"},
		"a restart for a variable of a pod that stays in service": {edit.Change{Containers: restart, Labels: labels, Read: read}, last, false,
			false, "partial: restarts app, label chart; moved: no restart, label version"},
		"the same, and its revision is a label": {edit.Change{Containers: restart, Labels: labels, Read: read}, last, true, false,
			"partial: restarts app, label version, label chart; moved: no change"},
		"back": {edit.Change{Containers: restart}, last, false, true, "back: restarts app"},
	} {
		t.Run(name, func(t *testing.T) {
			revision := podstate.PodRevision{Change: &c.needs, ByLabel: c.byLabel, Updated: c.updated}
			s := &podstate.Work{MarkedPod: podstate.MarkedPod{Pod: &corev1.Pod{}, PodRevision: revision}, Containers: c.needs.Containers,
				StaysIn: c.staysIn}
			w := s.NextWrite()
			got := writeText(w)
			if w.Ends == podstate.EndsPartial {
				got += "; " + writeText(after(s, w).NextWrite())
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func writeText(w podstate.Write) string {
	text := fmt.Sprintf("%s: %s", [...]string{"moved", "partial", "back"}[w.Ends], strings.TrimPrefix(w.Does.String(), "in place: "))
	for _, label := range w.Does.Labels {
		text += ", label " + label.Key
	}
	return text
}

// after returns what is left to write when the write has been made.
func after(s *podstate.Work, w podstate.Write) *podstate.Work {
	left := s.Needs()
	left.Containers = slices.DeleteFunc(slices.Clone(left.Containers),
		func(c edit.ContainerChange) bool { return slices.Contains(w.Does.Containers, c) })
	left.Labels = slices.DeleteFunc(slices.Clone(left.Labels), func(l patches.EntryChange) bool { return slices.Contains(w.Does.Labels, l) })
	origin := s.PodRevision
	origin.Change = &left
	marked := podstate.MarkedPod{Pod: s.Pod, PodRevision: origin}
	return &podstate.Work{MarkedPod: marked, Containers: left.Containers, StaysIn: s.StaysIn}
}

func TestDrains(t *testing.T) {
	restart := fixture.Reimaged("app", "v2").Containers
	side := fixture.Reimaged("side", "s2").Containers
	auxiliary := inplace.AuxiliaryOf(map[string]string{inplace.AnnotationAuxiliary: "side"})
	for name, c := range map[string]struct {
		containers   edit.ContainerChanges
		out, updated bool
		staysIn      string
		want         bool
	}{
		"a restart":                               {containers: restart, want: true},
		"nothing restarts":                        {},
		"nothing restarts, and it is out":         {out: true},
		"only an auxiliary container":             {containers: side},
		"the same, and it is out":                 {containers: side, out: true, want: true},
		"both":                                    {containers: slices.Concat(restart, side), want: true},
		"the last endpoint":                       {containers: restart, staysIn: last},
		"taken out before it was the last":        {containers: restart, out: true, staysIn: last, want: true},
		"it goes back":                            {containers: restart, updated: true},
		"it goes back, although out for the next": {containers: restart, updated: true, out: true},
	} {
		pod := &corev1.Pod{}
		if c.out {
			fixture.Out(pod)
		}
		work := &podstate.Work{MarkedPod: podstate.MarkedPod{Pod: pod, PodRevision: podstate.PodRevision{Updated: c.updated}},
			Containers: c.containers, Auxiliary: auxiliary, StaysIn: c.staysIn}
		if got := work.Drains(); got != c.want {
			t.Errorf("%s: drains is %t", name, got)
		}
	}
}

// TestPartiallyPatchedFollowsFromThePod: after the first write, what is left is what came second before.
func TestPartiallyPatchedFollowsFromThePod(t *testing.T) {
	for name, undone := range map[string]bool{"on the way": false, "undone": true} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v2", Chart: "2"})
			from, to := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.ReplicaSetOf(r, "b",
				fixture.App{Image: "v2", Chart: "2"}, 0)
			pod := fixture.PodOf(r, "p", from)
			look := func() *deployments.Pod {
				to, own := r.UpdateRevision(), edit.Living(&from.Spec.Template.Decoded().Spec)
				revision := podstate.PodRevision{Revision: from.Name, TemplateContainers: own, Updated: to == from, Marked: true,
					NewPods: r.Seen.OldDryRun.Of(from.UID, from.Spec.Template, own), UpdateHash: to.Labels[inplace.LabelTemplateHash]}
				newPods := r.Seen.DryRun.Of(to.UID, to.Spec.Template, edit.Living(&to.Spec.Template.Decoded().Spec))
				if revision.Updated {
					revision.NewPods = newPods
				} else {
					change := edit.Compare(from.Spec.Template, to.Spec.Template, r.Seen.Rules)
					revision.Change = &change
				}
				s := podstate.StateOf(&steps.PlanBuilder{}, pod, revision, newPods, 0, fixture.Start)
				s.StaysIn = last
				return &deployments.Pod{State: s, Owner: &deployments.Set{Rs: from}}
			}
			before := look()
			first := before.NextWrite()
			if before.PartiallyPatched() || first.Ends != podstate.EndsPartial {
				t.Fatalf("%+v is to be written", first)
			}
			if err := fixture.Apply(pod, before.Advance(to, false, fixture.Start).Operations); err != nil {
				t.Fatal(err)
			}
			pod.Generation++
			if undone {
				r.Deployment.Spec.Template = fixture.App{Image: "v1"}.Template()
				r.Seen.DryRun = fixture.Admitted(from)
			}
			second := look()
			want := after(&before.Work, first).NextWrite()
			if undone {
				want = podstate.Write{Does: edit.Change{Containers: second.Back}, Ends: podstate.EndsBack}
			}
			if got := second.NextWrite(); !second.PartiallyPatched() ||
				writeText(podstate.Write{Does: edit.Change{Containers: second.Back}}) != "moved: restarts app" || writeText(got) != writeText(want) {
				t.Errorf("%s is left of %s, and back %+v", writeText(got), writeText(want), second.Back)
			}
		})
	}
}

// TestWhatWritesSay: events and the log have these texts. None says that nothing changes, or that a pod goes to where it is.
func TestWhatWritesSay(t *testing.T) {
	image := fixture.Reimaged("app", "v2")
	for want, test := range map[string]struct {
		write    podstate.Write
		from, to string
	}{
		"move from a to b, in place: restarts app":                    {podstate.Write{Does: image, Ends: podstate.EndsMoved}, "a", "b"},
		"restart before the move from a to b, in place: restarts app": {podstate.Write{Does: image, Ends: podstate.EndsPartial}, "a", "b"},
		"move from a to b":                                {podstate.Write{Ends: podstate.EndsMoved}, "a", "b"},
		"end of the move to b":                            {podstate.Write{Ends: podstate.EndsMoved}, "b", "b"},
		"back to a, in place: restarts app":               {podstate.Write{Does: image, Ends: podstate.EndsBack}, "a", "a"},
		"back to a":                                       {podstate.Write{Ends: podstate.EndsBack}, "a", "a"},
		"note CPU and memory before the move from a to b": {podstate.Write{Does: edit.Change{}, Ends: podstate.EndsPartial}, "a", "b"},
	} {
		if got := test.write.Describe(test.from, test.to); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestOnlyTheLastWriteMoves: users are told that a pod has moved when it has the identity of its new revision, and not before.
func TestOnlyTheLastWriteMoves(t *testing.T) {
	for ends, moves := range map[podstate.Outcome]bool{podstate.EndsMoved: true, podstate.EndsPartial: false, podstate.EndsBack: false} {
		s := podstate.State{Work: podstate.Work{MarkedPod: podstate.MarkedPod{Pod: &corev1.Pod{}}}}
		if step := s.Patch(podstate.Write{Ends: ends}, false, readiness.Move{}, nil, ""); step.Moves != moves {
			t.Errorf("a write that ends %d moves the pod: %t", ends, step.Moves)
		}
	}
}

// TestWhatComesWithAResize: CPU and memory come before a restart. They need no turn of their own if the pod is unavailable anyway, and
// nothing but a resize goes without a turn: otherwise more pods would be unavailable than may be.
func TestWhatComesWithAResize(t *testing.T) {
	restart := fixture.Reimaged("app", "v2").Containers
	resize := edit.ContainerChanges{{Container: "app", Resources: edit.ResourceChange{To: edit.Amounts{CPURequest: "200m"}}}}
	for name, c := range map[string]struct {
		containers    edit.ContainerChanges
		applied, turn bool
		restartsNext  bool
		counted       bool
	}{
		"nothing is left":                        {applied: true},
		"nothing is left, and it is restarting":  {},
		"a restart":                              {containers: restart, applied: true, restartsNext: true},
		"a restart after another":                {containers: restart, restartsNext: true},
		"a resize":                               {containers: resize, applied: true},
		"a resize while it restarts":             {containers: resize, counted: true},
		"a resize while it drains":               {containers: resize, applied: true, turn: true, counted: true},
		"a restart after a resize":               {containers: slices.Concat(resize, restart), applied: true},
		"a restart after a resize, and its turn": {containers: slices.Concat(resize, restart), applied: true, turn: true, counted: true},
	} {
		s := podstate.State{Work: podstate.Work{Containers: c.containers, Applied: c.applied}, Turn: c.turn}
		if next, counted := s.RestartsNext(), s.IsCounted(); next != c.restartsNext || counted != c.counted {
			t.Errorf("%s: restarts next %t, and counted as unavailable %t", name, next, counted)
		}
	}
}
