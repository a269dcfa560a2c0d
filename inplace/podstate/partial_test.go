package podstate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// TestWhichMarksConfirmTheWayBack: a pod was patched from v1 to v2, and any client may write its mark. Where admission's answer about v1 is
// unknown, or the namespace has lost its label, the pod must not get an image that no policy has seen. Everywhere else it must go back.
func TestWhichMarksConfirmTheWayBack(t *testing.T) {
	for name, c := range map[string]struct {
		marked         string // the image that the pod had, as its mark says
		unknown        string
		asked, byMark  bool
		unmarked, back bool
	}{
		"confirmed":                                 {marked: "v1", asked: true, back: true},
		"other than its revision's":                 {marked: "mirror/v1", asked: true, back: true},
		"admission is unknown":                      {marked: "v1", unknown: "no answer", back: true},
		"admission is unknown, and other":           {marked: "mirror/v1", unknown: "no answer"},
		"without the label":                         {marked: "v1", asked: true, byMark: true, back: true},
		"without the label, and other":              {marked: "mirror/v1", asked: true, byMark: true},
		"without the label, before the dry run":     {marked: "mirror/v1", byMark: true, back: true},
		"the ReplicaSet is not marked":              {marked: "v1", asked: true, unmarked: true},
		"asked, and the answer is not known at all": {marked: "mirror/v1", asked: true, unknown: "no answer"},
	} {
		move := readiness.Move{Hash: "b", Back: map[string]string{"app": c.marked}}
		s := stateOf(&steps.PlanBuilder{}, fixture.App{Image: "v1"}, fixture.App{Image: "v2"}, move,
			func(pod *corev1.Pod, revision *podstate.PodRevision) {
				pod.Spec.Containers[0].Image = "v2"
				revision.ByMark, revision.Marked, revision.NewPods.Unknown = c.byMark, !c.unmarked, c.unknown
				if c.asked {
					revision.NewPods.UpdateRevision = "a"
				}
			})
		if back := len(s.Back) > 0; back != c.back {
			t.Errorf("%s: the pod goes back to %v", name, s.Back)
		}
	}
}

// TestOnlyWhatHasReadGoesBack: app reads label chart, and side reads annotation note. Both have the images of their revision. A container
// that never restarted, or reads nothing that goes back, must not restart.
func TestOnlyWhatHasReadGoesBack(t *testing.T) {
	both := edit.ReadKeys{Labels: []string{fixture.ChartKey}, Annotations: []string{fixture.NoteKey}}
	chart := edit.ReadKeys{Labels: []string{fixture.ChartKey}}
	for name, c := range map[string]struct {
		back    map[string]string
		read    edit.ReadKeys
		byLabel bool
		want    string
	}{
		"both have restarted for both":     {map[string]string{"app": "v1", "side": "s1"}, both, false, "moved: restarts app, side"},
		"side has restarted for its image": {map[string]string{"app": "v1", "side": "s1"}, chart, false, "moved: restarts app"},
		"side has not restarted":           {map[string]string{"app": "v1"}, both, false, "moved: restarts app"},
		"nothing was read":                 {map[string]string{"app": "v1"}, edit.ReadKeys{}, false, "moved: no change"},
		"another client has marked a pod of a DaemonSet": {map[string]string{"app": "v1"}, chart, true,
			"moved: no change"},
	} {
		s := stateOf(&steps.PlanBuilder{}, reader, another, readiness.Move{Hash: "b", Back: c.back, Read: c.read},
			func(_ *corev1.Pod, revision *podstate.PodRevision) { revision.ByLabel = c.byLabel })
		if got := writeText(podstate.Write{Does: edit.Change{Containers: s.Back}}); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestWhatWasReadEarlyIsNeeded: app restarted for another edit, and read its label. Now the update changes only side. So app must read the
// label once more. A mark that only another client can have written restarts nothing.
func TestWhatWasReadEarlyIsNeeded(t *testing.T) {
	to := reader
	to.Sidecar = "s2"
	had, chart := map[string]string{"app": "v1"}, edit.ReadKeys{Labels: []string{fixture.ChartKey}}
	asRevision := func(_ *corev1.Pod, revision *podstate.PodRevision) { revision.Updated, revision.Change = true, nil }
	for name, c := range map[string]struct {
		move   readiness.Move
		change func(*corev1.Pod, *podstate.PodRevision)
		want   string
	}{
		"it has restarted": {readiness.Move{Hash: "c", Back: had, Read: chart}, func(*corev1.Pod, *podstate.PodRevision) {},
			"moved: restarts app, side, label chart"},
		"it has not restarted": {readiness.Move{Hash: "c", Read: chart}, func(*corev1.Pod, *podstate.PodRevision) {},
			"moved: restarts side"},
		"a pod of a DaemonSet": {readiness.Move{Hash: "c", Back: had, Read: chart},
			func(_ *corev1.Pod, revision *podstate.PodRevision) { revision.ByLabel = true }, "moved: restarts side"},
		"it goes back": {readiness.Move{Hash: "c", Back: had, Read: chart}, asRevision, "moved: restarts app, label chart"},
		"it goes nowhere, because its ReplicaSet is not marked": {readiness.Move{Hash: "c", Back: had, Read: chart},
			func(pod *corev1.Pod, revision *podstate.PodRevision) {
				asRevision(pod, revision)
				revision.Marked = false
			}, "moved: no change"},
	} {
		if got := needed(stateOf(&steps.PlanBuilder{}, reader, to, c.move, c.change)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
