package inplace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestWrites: what is left to write, in its order. The last write brings the identity; only containers that restart in a pod without a gate ask
// for another before it.
func TestWrites(t *testing.T) {
	restart := reimaged("app", "v2").Containers
	label := []EntryChange{{Key: "version", Value: "2"}}
	for name, c := range map[string]struct {
		needs    Change
		ungated  bool
		byLabel  bool
		ofTarget bool
		want     string
	}{
		"nothing but the identity":          {Change{}, true, false, false, "moved: no change"},
		"labels":                            {Change{Labels: label}, true, false, false, "moved: no restart, labels"},
		"a restart behind a gate":           {Change{Containers: restart, Labels: label}, false, false, false, "moved: restarts app, labels"},
		"a restart without a gate":          {Change{Containers: restart, Labels: label}, true, false, false, "half-way: restarts app; moved: no restart, labels"},
		"the same, the identity is a label": {Change{Containers: restart, Labels: label}, true, true, false, "half-way: restarts app, labels; moved: no change"},
		"back":                              {Change{Containers: restart}, true, false, true, "back: restarts app"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			if !c.ungated {
				pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: ConditionServing}}
			}
			s := &podState{pod: pod, needs: c.needs, origin: origin{byLabel: c.byLabel, ofTarget: c.ofTarget}}
			var got []string
			for _, w := range s.writes() {
				text := fmt.Sprintf("%s: %s", [...]string{"moved", "half-way", "back"}[w.ends], strings.TrimPrefix(w.does.String(), "in place: "))
				if len(w.does.Labels) > 0 {
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
			from, to := r.replicaSet("a", app{image: "v1"}, 1), r.replicaSet("b", app{image: "v2", chart: "2"}, 0)
			pod := r.pod("p", from, ungated)
			look := func() *member { return r.view().members[0] }
			before := look()
			if before.isHalfway() || len(before.writes()) != 2 {
				t.Fatalf("%+v is to be written", before.writes())
			}
			if err := apply(pod, before.advance(to, false, start).Operations[1:]); err != nil {
				t.Fatal(err)
			}
			pod.Generation++
			if undone {
				r.Deployment.Spec.Template = app{image: "v1"}.template()
			}
			after := look()
			want := []write{before.writes()[1]}
			if undone {
				want = []write{{does: after.back, ends: endsBack}}
			}
			equal := func(a, b write) bool { return a.ends == b.ends && a.does.String() == b.does.String() }
			if !after.isHalfway() || after.back.String() != "in place: restarts app" || !slices.EqualFunc(after.writes(), want, equal) {
				t.Errorf("after %+v there is %+v, and back %s", want, after.writes(), after.back)
			}
		})
	}
}
