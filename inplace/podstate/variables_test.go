package podstate_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// What variables read, and what they do not, of a pod of a Deployment in the following tests.
var (
	reader  = fixture.App{Image: "v1", Sidecar: "s1", Reads: true, Chart: "1", Note: "1"}
	another = fixture.App{Image: "v1", Sidecar: "s1", Reads: true, Chart: "2", Note: "1"}
)

// looks returns what of the pod changes in these tests: its images and variables as a kubelet would set them now.
func looks(pod *corev1.Pod) string {
	var all []string
	for _, c := range pod.Spec.Containers {
		all = append(all, c.Image+" "+fixture.Variables(pod, c))
	}
	return strings.Join(all, ", ")
}

// until makes the patches of the pod that the plans have, and lets the kubelet carry them out, until the pod is as it is to be.
func until(
	t *testing.T, r *deployments.Rollout, pod *corev1.Pod, plan func(*deployments.Rollout) steps.Plan, done func(readiness.Move) bool,
) {
	t.Helper()
	for range 30 {
		for _, step := range plan(r).Steps {
			if patch, is := step.(steps.PatchPod); is {
				if err := fixture.Apply(pod, patch.Operations); err != nil {
					t.Fatal(err)
				}
				pod.Generation++
			}
		}
		if done(readiness.MoveOf(pod)) {
			return
		}
		restarted(pod)
		r.Seen.Now = r.Seen.Now.Add(3 * time.Second)
	}
	t.Fatalf("the pod is %s, marked %v", looks(pod), readiness.MoveOf(pod))
}

// restarted lets the kubelet carry out the last patch of the pod.
func restarted(pod *corev1.Pod) {
	pod.Status.ObservedGeneration = pod.Generation
	for i, c := range pod.Spec.Containers {
		status := &pod.Status.ContainerStatuses[i]
		if moved, is := readiness.MoveOf(pod).Containers[c.Name]; is && moved.ContainerID == status.ContainerID {
			status.ContainerID, status.State = fmt.Sprint(c.Name, pod.Generation), fixture.RunningSince(fixture.Start)
		}
	}
}

// begun returns a Deployment in the middle of its update to the second app, with a pod of the first one, the last endpoint of a
// Service, whose containers have been patched, and nothing else of it.
func begun(t *testing.T, from, to fixture.App, changes ...func(*corev1.Pod)) (*deployments.Rollout, *corev1.Pod) {
	t.Helper()
	r := fixture.New(1, to)
	r.Seen.Rules = fixture.AllInPlace.For(map[string]string{inplace.AnnotationInPlaceAnnotations: fixture.NoteKey})
	for i, app := range []fixture.App{from, to} {
		rs := fixture.ReplicaSetOf(r, []string{"a", "b"}[i], app, []int32{1, 0}[i])
		rs.Labels[inplace.LabelUpdating] = fixture.Begun
	}
	pod := fixture.PodOf(r, "p", r.ReplicaSets[0])
	r.Seen.Endpoints = podstate.Endpoints{pod.UID: {LastOf: "web"}}
	pod.Annotations = from.Template().Typed().Annotations
	for _, change := range changes {
		change(pod)
	}
	until(t, r, pod, (*deployments.Rollout).Plan, readiness.Move.PartiallyPatched)
	return r, pod
}

// TestVariablesReadWithTheRestart: a pod that stays in service keeps its identity while its containers restart, and has what they read.
func TestVariablesReadWithTheRestart(t *testing.T) {
	with := func(change func(*fixture.App)) fixture.App {
		app := reader
		change(&app)
		return app
	}
	for name, test := range map[string]struct {
		to   fixture.App
		want string
	}{
		"a label":       {another, fixture.Another + " READS=2, s1 READS=1"},
		"an annotation": {with(func(a *fixture.App) { a.Note = "2" }), "v1 READS=1, docker.io/library/s1:latest READS=2"},
		"removed": {with(func(a *fixture.App) { a.Chart, a.Note = "", "" }),
			fixture.Another + " READS=, docker.io/library/s1:latest READS="},
		"with an image": {with(func(a *fixture.App) { a.Image, a.Chart = "v2", "2" }), "v2 READS=2, s1 READS=1"},
		"with an image of the other": {with(func(a *fixture.App) { a.Sidecar, a.Chart = "s2", "2" }),
			fixture.Another + " READS=2, s2 READS=1"},
	} {
		_, pod := begun(t, reader, test.to)
		if got := looks(pod); got != test.want || pod.Labels["pod-template-hash"] != "a" {
			t.Errorf("%s: %s, %v, want %s", name, got, pod.Labels, test.want)
		}
	}
}

// TestLabelsThatNoVariableReadsComeLast: they come with the identity.
func TestLabelsThatNoVariableReadsComeLast(t *testing.T) {
	from, to := reader, reader
	from.Reads, to.Reads, to.Chart, to.Image = false, false, "2", "v2"
	_, pod := begun(t, from, to)
	if chart := pod.Labels[fixture.ChartKey]; chart != "1" || pod.Spec.Containers[0].Image != "v2" {
		t.Errorf("the pod has %s and chart %s", fixture.Images(pod), chart)
	}
}

// wayBack reports whether the pod is no longer partially patched.
func wayBack(move readiness.Move) bool { return !move.PartiallyPatched() }

// TestVariablesGoBack: a partially patched pod gets again what its own revision says, whatever ends its update.
func TestVariablesGoBack(t *testing.T) {
	undo := func(r *deployments.Rollout) steps.Plan {
		r.Deployment.Spec.Template, r.Seen.DryRun = r.ReplicaSets[0].Spec.Template, fixture.Admitted(r.ReplicaSets[0])
		return r.Plan()
	}
	fallBack := func(r *deployments.Rollout) steps.Plan {
		r.Seen.OldDryRun = fixture.Admitted(r.ReplicaSets[0])
		return r.FallBack(inplace.Reason{Code: inplace.CodeRefused})
	}
	unlabelled := func(r *deployments.Rollout) steps.Plan {
		r.Seen.Mode, r.Seen.OldDryRun = inplace.ModeNone, dryrun.Result{Unknown: "no dry run"}
		return r.Plan()
	}
	for end, plan := range map[string]func(*deployments.Rollout) steps.Plan{"undo": undo, "fallback": fallBack, "label removed": unlabelled} {
		for name, from := range map[string]fixture.App{"changed": reader, "added": {Image: "v1", Sidecar: "s1", Reads: true}} {
			to := another
			to.Note = "2"
			r, pod := begun(t, from, to)
			if got, want := looks(pod), fixture.Another+" READS=2, docker.io/library/s1:latest READS=2"; got != want {
				t.Fatalf("%s: partially patched, it is %s", name, got)
			}
			until(t, r, pod, plan, wayBack)
			want := fmt.Sprintf("v1 READS=%s, s1 READS=%s", from.Chart, from.Note)
			if got := looks(pod); got != want || !readiness.MoveOf(pod).Read.None() {
				t.Errorf("%s, %s: %s, marked %v, want %s", end, name, got, readiness.MoveOf(pod), want)
			}
		}
	}
}

// TestVariablesGoBackWithTheName: the container was restarted before, and ran its image under another name. Its next restart gives it the
// name that its revision has.
func TestVariablesGoBackWithTheName(t *testing.T) {
	r, pod := begun(t, reader, another, func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = fixture.Another })
	if got, want := looks(pod), "v1 READS=2, s1 READS=1"; got != want {
		t.Fatalf("partially patched, it is %s, want %s", got, want)
	}
	r.Deployment.Spec.Template, r.Seen.DryRun = r.ReplicaSets[0].Spec.Template, fixture.Admitted(r.ReplicaSets[0])
	until(t, r, pod, (*deployments.Rollout).Plan, wayBack)
	if got, want := looks(pod), fixture.Another+" READS=1, s1 READS=1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestVariablesOfAnotherRevision: the next edit leaves the label as the pod's own revision has it, and the container has read another one.
func TestVariablesOfAnotherRevision(t *testing.T) {
	third := reader
	third.Sidecar = "s2"
	r, pod := begun(t, reader, another)
	r.Deployment.Spec.Template = third.Template()
	fixture.ReplicaSetOf(r, "c", third, 0).Labels[inplace.LabelUpdating] = fixture.Begun
	until(t, r, pod, (*deployments.Rollout).Plan, func(move readiness.Move) bool { return move.Hash == "c" })
	if got, want := looks(pod), "v1 READS=1, s2 READS=1"; got != want {
		t.Errorf("the pod is %s, want %s", got, want)
	}
	if _, restarts := readiness.MoveOf(pod).Containers["app"]; !restarts {
		t.Errorf("the container is not restarted: %s", readiness.MoveOf(pod))
	}
}

// TestForgedMarkMovesNoOtherLabel: any client may write the mark of a pod.
func TestForgedMarkMovesNoOtherLabel(t *testing.T) {
	r, pod := begun(t, reader, another)
	pod.Labels["mine"], pod.Labels[fixture.ChartKey] = "yes", "2"
	move := readiness.MoveOf(pod)
	move.Read.Labels = []string{"app", "chart", "mine", "pod-template-hash"}
	pod.Annotations[inplace.AnnotationMove] = move.String()
	r.Deployment.Spec.Template, r.Seen.DryRun = reader.Template(), fixture.Admitted(r.ReplicaSets[0])
	until(t, r, pod, (*deployments.Rollout).Plan, wayBack)
	want := map[string]string{"app": "web", "mine": "yes", "pod-template-hash": "a", fixture.ChartKey: "1"}
	if !maps.Equal(pod.Labels, want) {
		t.Errorf("the pod has labels %v", pod.Labels)
	}
}
