package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/replicas"
)

// TestWrites: what is left to write, in its order. The last write brings the identity; only containers that restart in a pod without a gate ask
// for another before it.
func TestWrites(t *testing.T) {
	restart := reimaged("app", "v2").Containers
	label := []patches.EntryChange{{Key: "version", Value: "2"}}
	for name, c := range map[string]struct {
		needs    edit.Change
		ungated  bool
		byLabel  bool
		ofTarget bool
		want     string
	}{
		"nothing but the identity":          {edit.Change{}, true, false, false, "moved: no change"},
		"labels":                            {edit.Change{Labels: label}, true, false, false, "moved: no restart, labels"},
		"a restart behind a gate":           {edit.Change{Containers: restart, Labels: label}, false, false, false, "moved: restarts app, labels"},
		"a restart without a gate":          {edit.Change{Containers: restart, Labels: label}, true, false, false, "half-way: restarts app; moved: no restart, labels"},
		"the same, the identity is a label": {edit.Change{Containers: restart, Labels: label}, true, true, false, "half-way: restarts app, labels; moved: no change"},
		"back":                              {edit.Change{Containers: restart}, true, false, true, "back: restarts app"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			if !c.ungated {
				pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}}
			}
			s := &member.State{Pod: pod, Needs: c.needs, Origin: member.Origin{ByLabel: c.byLabel, OfTarget: c.ofTarget}}
			var got []string
			for _, w := range s.Writes() {
				text := fmt.Sprintf("%s: %s", [...]string{"moved", "half-way", "back"}[w.Ends], strings.TrimPrefix(w.Does.String(), "in place: "))
				if len(w.Does.Labels) > 0 {
					text += ", labels"
				}
				got = append(got, text)
			}
			if got := strings.Join(got, "; "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestHalfwayFollowsFromThePod: once the first write has been made, what is left is what came second before.
func TestHalfwayFollowsFromThePod(t *testing.T) {
	for name, undone := range map[string]bool{"on the way": false, "undone": true} {
		t.Run(name, func(t *testing.T) {
			r := fixture(1, app{image: "v2", chart: "2"})
			from, to := replicaSetOf(r, "a", app{image: "v1"}, 1), replicaSetOf(r, "b", app{image: "v2", chart: "2"}, 0)
			pod := podOf(r, "p", from, ungated)
			look := func() *replicas.Member { return r.View().Members[0] }
			before := look()
			if before.IsHalfway() || len(before.Writes()) != 2 {
				t.Fatalf("%+v is to be written", before.Writes())
			}
			if err := apply(pod, before.Advance(to, false, start).Operations[1:]); err != nil {
				t.Fatal(err)
			}
			pod.Generation++
			if undone {
				r.Deployment.Spec.Template = app{image: "v1"}.template()
			}
			after := look()
			want := []member.Write{before.Writes()[1]}
			if undone {
				want = []member.Write{{Does: after.Back, Ends: member.EndsBack}}
			}
			equal := func(a, b member.Write) bool { return a.Ends == b.Ends && a.Does.String() == b.Does.String() }
			if !after.IsHalfway() || after.Back.String() != "in place: restarts app" || !slices.EqualFunc(after.Writes(), want, equal) {
				t.Errorf("after %+v there is %+v, and back %s", want, after.Writes(), after.Back)
			}
		})
	}
}
