package podstate_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// stateOf returns the state of a pod with that mark, in an update from ReplicaSet a, with the first app, to ReplicaSet b, with the second.
func stateOf(
	plan *steps.PlanBuilder, from, to fixture.App, move readiness.Move, changes ...func(*corev1.Pod, *podstate.PodRevision),
) podstate.State {
	r := fixture.New(1, to)
	a := fixture.ReplicaSetOf(r, "a", from, 1)
	pod := fixture.PodOf(r, "p", a)
	template := a.Spec.Template.Decoded()
	own, change := edit.Living(&template.Spec), edit.Compare(a.Spec.Template, to.Template(), r.Seen.Rules)
	revision := podstate.PodRevision{Revision: a.Name, TemplateContainers: own, TemplateLabels: template.Labels,
		TemplateAnnotations: template.Annotations, NewPods: dryrun.NewPods{Containers: own}, Change: &change, Marked: true, UpdateHash: "b"}
	for _, change := range changes {
		change(pod, &revision)
	}
	if move.Hash != "" {
		pod.Annotations = map[string]string{inplace.AnnotationMove: move.String()}
	}
	newPods := dryrun.NewPods{Containers: edit.Living(&to.Template().Decoded().Spec)}
	return podstate.StateOf(plan, pod, revision, newPods, 0, fixture.Start)
}

// needed returns what is left to write in the pod.
func needed(s podstate.State) string { return writeText(podstate.Write{Does: s.Needs()}) }

// TestRewritten: admission gave the pod another image than its template has. What a patch of Stayput's changed does not count, but what the
// pod had before it does.
func TestRewritten(t *testing.T) {
	for name, c := range map[string]struct {
		image, had string
		rewritten  bool
	}{
		"as in the template":                 {"v1", "", false},
		"by admission":                       {"mirror/v1", "", true},
		"patched":                            {"v2", "v1", false},
		"patched, and by admission before":   {"v2", "mirror/v1", true},
		"patched, with a name of that image": {"v2", "docker.io/library/v1", false},
	} {
		move := readiness.Move{Hash: "b", Back: map[string]string{"app": c.had}}
		s := stateOf(&steps.PlanBuilder{}, fixture.App{Image: "v1"}, fixture.App{Image: "v2"}, move,
			func(pod *corev1.Pod, _ *podstate.PodRevision) { pod.Spec.Containers[0].Image = c.image })
		if got := len(s.Rewritten) > 0; got != c.rewritten {
			t.Errorf("%s: rewritten is %t: %v", name, got, s.Rewritten)
		}
	}
}

// TestRestartsAreMadeOnce: an annotation of the template asks for a restart with the same image. A container that has restarted for it must
// not restart again when the pod gets its identity, and one that has restarted for another edit must.
func TestRestartsAreMadeOnce(t *testing.T) {
	for name, c := range map[string]struct {
		move readiness.Move
		want string
	}{
		"not begun":                     {readiness.Move{}, "moved: restarts app"},
		"restarted":                     {readiness.Move{Hash: "b", Back: map[string]string{"app": "v1"}}, "moved: no restart"},
		"restarted for an earlier edit": {readiness.Move{Hash: "c", Back: map[string]string{"app": "v1"}}, "moved: restarts app"},
		"only its resize is noted":      {readiness.Move{Hash: "b", Resize: readiness.Resize{"app": {}}}, "moved: restarts app"},
	} {
		s := stateOf(&steps.PlanBuilder{}, fixture.App{Image: "v1"}, fixture.App{Image: "v1", Restarted: "now"}, c.move)
		if got := needed(s); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestContainersWithoutAnotherName: a container is restarted by another name of its image. Whether there is one is known only when it runs:
// a pod that starts must not make the update fall back, and an update that can never be made in place must not wait for ever.
func TestContainersWithoutAnotherName(t *testing.T) {
	const image = "registry.example/web:1"
	named, nameless := "registry.example/web@sha256:"+strings.Repeat("0", 64), "sha256:"+strings.Repeat("0", 64)
	sent := func(ago time.Duration) readiness.Move {
		return readiness.Move{Hash: "a", Containers: map[string]readiness.MovedContainer{
			"app": {Image: image, ContainerID: "p/app", At: metav1.NewTime(fixture.Start.Add(-ago))}}}
	}
	const hasNotRun = "container app of pod p has not run yet, so no other name for its image is known by which it could be restarted"
	hasNone := `container app of pod p runs image "` + nameless + `", which has no other name by which it could be restarted`
	const stopping = "its old containers have yet to stop after the last patch"
	for name, c := range map[string]struct {
		runs      string
		started   time.Duration // how long ago
		move      readiness.Move
		postponed string
		never     string
		after     time.Duration
	}{
		"has another name":                       {runs: named, started: time.Hour},
		"has another name, and is stopping":      {runs: named, started: time.Hour, move: sent(time.Second), postponed: stopping},
		"has none":                               {runs: nameless, started: time.Hour, postponed: hasNone, never: hasNone},
		"has none, and is new":                   {runs: nameless, started: time.Second, postponed: hasNone, never: hasNone},
		"has not run yet":                        {started: time.Minute, postponed: hasNotRun, after: time.Minute},
		"has not run for too long":               {started: 2 * time.Minute, postponed: hasNotRun, never: hasNotRun},
		"has none, and is stopping":              {nameless, time.Hour, sent(10 * time.Second), hasNone, "", 30 * time.Second},
		"has none, and its old one was replaced": {nameless, time.Hour, sent(40 * time.Second), hasNone, hasNone, 0},
	} {
		plan := &steps.PlanBuilder{}
		s := stateOf(plan, fixture.App{Image: image}, fixture.App{Image: image, Restarted: "now"}, c.move,
			func(pod *corev1.Pod, _ *podstate.PodRevision) {
				pod.Status.StartTime = new(metav1.NewTime(fixture.Start.Add(-c.started)))
				pod.Status.ContainerStatuses[0].ImageID = c.runs
			})
		if got := s.Postponed(); got != c.postponed {
			t.Errorf("%s: postponed because %q", name, got)
		}
		never := ""
		if reasons := s.Needs().Reasons; len(reasons) > 0 {
			never = reasons[0].Message
		}
		if never != c.never || plan.Result.After != c.after {
			t.Errorf("%s: never because %q, and again in %s", name, never, plan.Result.After)
		}
	}
}

// TestAnotherImageIsNotPostponed: only a container that keeps its image might never restart for two patches, one shortly after the other.
func TestAnotherImageIsNotPostponed(t *testing.T) {
	move := readiness.Move{Hash: "a", Containers: map[string]readiness.MovedContainer{"app": {Image: "v1", ContainerID: "p/app"}}}
	s := stateOf(&steps.PlanBuilder{}, fixture.App{Image: "v1"}, fixture.App{Image: "v2"}, move)
	if got := s.Postponed(); got != "" {
		t.Errorf("postponed because %q", got)
	}
}
