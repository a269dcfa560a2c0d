package deployments_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// TestForgedMarkChangesNoPod: another client may write a mark, in any mode. Stayput writes nothing into the pod that its own ReplicaSet
// does not say, and removes the mark.
func TestForgedMarkChangesNoPod(t *testing.T) {
	image := readiness.Move{Hash: "b", Containers: map[string]readiness.MovedContainer{"app": {Image: "v1"}},
		Back: map[string]string{"app": "v9"}}
	size := readiness.Move{Hash: "b", Resize: readiness.Resize{"app": {Back: edit.Amounts{MemoryLimit: "268435456"}}}}
	both := readiness.Move{Hash: "a", Back: map[string]string{"app": "v9"}, Resize: size.Resize}
	for name, mark := range map[string]readiness.Move{"an image": image, "memory": size, "both": both} {
		for _, mode := range []inplace.Mode{inplace.ModeNone, inplace.ModeNative, inplace.ModeInPlace} {
			for _, marked := range []string{"", "1"} {
				r, pod := markedRollout(mark, mode)
				if marked != "" {
					r.ReplicaSets[0].Labels[inplace.LabelUpdating] = marked
				}
				follow(t, r, pod)
				container := pod.Spec.Containers[0]
				if container.Image != "v1" || container.Resources.Limits.Memory().String() != "64Mi" || readiness.MoveOf(pod).PartiallyPatched() {
					t.Errorf("%s, mode %q, updating %q: the pod has %s, %v and the mark %s", name, mode, marked, container.Image, container.Resources,
						readiness.MoveOf(pod))
				}
			}
		}
	}
}

// TestPodGoesBackToMarkedReplicaSets: another client may create a ReplicaSet, a pod of it with another image, and a mark by which the pod
// would go back to what the ReplicaSet says. Stayput has marked each ReplicaSet whose pods it patches, and others it does not follow.
func TestPodGoesBackToMarkedReplicaSets(t *testing.T) {
	mark := readiness.Move{Hash: "b", Containers: map[string]readiness.MovedContainer{"app": {Image: "v9"}},
		Back: map[string]string{"app": "v1"}}
	for _, mode := range []inplace.Mode{inplace.ModeNone, inplace.ModeNative, inplace.ModeInPlace} {
		for name, test := range map[string]struct {
			change func(rs *apps.ReplicaSet, pod *corev1.Pod)
			want   string
		}{
			"not marked": {func(*apps.ReplicaSet, *corev1.Pod) {}, "v9"},
			"marked":     {func(rs *apps.ReplicaSet, _ *corev1.Pod) { rs.Labels[inplace.LabelUpdating] = fixture.Begun }, "v1"},
			"marked, and a pod that policies may take for a pre-pull pod": {func(rs *apps.ReplicaSet, pod *corev1.Pod) {
				rs.Labels[inplace.LabelUpdating], pod.Labels[inplace.LabelPrePull] = fixture.Begun, "x"
			}, "v9"},
		} {
			r, pod := markedRollout(mark, mode)
			pod.Spec.Containers[0].Image = "v9"
			test.change(r.ReplicaSets[0], pod)
			follow(t, r, pod)
			if got := pod.Spec.Containers[0].Image; got != test.want || readiness.MoveOf(pod).PartiallyPatched() {
				t.Errorf("%s, mode %q: the pod has %s and the mark %s", name, mode, got, readiness.MoveOf(pod))
			}
		}
	}
}

// TestMarkStaysUntilPodsAreBack: no new pod of the ReplicaSet is admitted for a while, so its pod stays partially patched. Its ReplicaSet
// keeps the mark, which holds nothing meanwhile.
func TestMarkStaysUntilPodsAreBack(t *testing.T) {
	r, pod := markedRollout(readiness.Move{Hash: "b", Containers: map[string]readiness.MovedContainer{"app": {Image: "v2"}},
		Back: map[string]string{"app": "v1"}}, inplace.ModeNative)
	pod.Spec.Containers[0].Image = "v2"
	rs := r.ReplicaSets[0]
	rs.Labels[inplace.LabelUpdating] = fixture.Begun
	r.Seen.DryRun, r.Seen.OldDryRun = dryrun.Result{}, dryrun.Result{UpdateRevision: rs.UID, Refused: "not signed"}
	look := func() {
		for _, step := range r.Plan().Steps {
			if patch, is := step.(steps.PatchReplicaSet); is {
				if err := fixture.Apply(rs, patch.Operations); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for range 3 {
		if look(); rs.Labels[inplace.LabelUpdating] == "" || revisions.Updating(rs) {
			t.Errorf("before the pod is back, the mark is %q", rs.Labels[inplace.LabelUpdating])
		}
	}
	pod.Annotations = nil
	if look(); revisions.Marked(rs) {
		t.Errorf("the marks stay without a reason: %v", rs.Labels)
	}
}

// TestUndoKeepsAdmittedImage: admission gave a pod another image than its template has. A mark does not make Stayput write the template's
// image.
func TestUndoKeepsAdmittedImage(t *testing.T) {
	mark := readiness.Move{Hash: "b", Containers: map[string]readiness.MovedContainer{"app": {Image: "mirror/v1"}},
		Back: map[string]string{"app": "v1"}}
	for name, c := range map[string]struct {
		answer dryrun.Result
		mode   inplace.Mode
		marked bool
		want   string
	}{
		"as new ones": {dryrun.Result{Pod: &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app",
			Image: "mirror/v1"}}}}}, inplace.ModeInPlace, false, "mirror/v1"},
		"not what a policy refuses": {dryrun.Result{Pod: &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app",
			Image: "mirror/v1"}}}}}, inplace.ModeNone, false, "mirror/v1"},
		"not where none are admitted": {dryrun.Result{Refused: "not signed"}, inplace.ModeInPlace, true, "mirror/v1"},
		"not without an answer":       {dryrun.Result{}, inplace.ModeInPlace, true, "mirror/v1"},
	} {
		r, pod := markedRollout(mark, c.mode)
		pod.Spec.Containers[0].Image, r.Seen.DryRun = "mirror/v1", dryrun.Result{}
		r.ReplicaSets[0].Labels[inplace.LabelUpdating] = fixture.Begun
		plan := r.Plan()
		if plan.DryRun == nil || plan.DryRun.Back != (c.mode == inplace.ModeNone) || plan.DryRun.UpdateRevision != r.ReplicaSets[0].UID ||
			slices.ContainsFunc(plan.Steps, patchesPods) {
			t.Fatalf("%s: it asks %+v before %v", name, plan.DryRun, plan.Steps)
		}
		r.Seen.OldDryRun = c.answer
		if c.answer != (dryrun.Result{}) {
			r.Seen.OldDryRun.UpdateRevision = plan.DryRun.UpdateRevision
		}
		if !plan.DryRun.Back {
			r.Seen.DryRun, r.Seen.OldDryRun = r.Seen.OldDryRun, dryrun.Result{}
		}
		for _, step := range r.Plan().Steps {
			if patch, is := step.(steps.PatchPod); is {
				if err := fixture.Apply(pod, patch.Operations); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := pod.Spec.Containers[0].Image; got != c.want || readiness.MoveOf(pod).PartiallyPatched() != c.marked {
			t.Errorf("%s: the pod has %s and the mark %s", name, got, readiness.MoveOf(pod))
		}
	}
}

// markedRollout returns a complete rollout with a pod that another client has marked.
func markedRollout(mark readiness.Move, mode inplace.Mode) (deployments.Rollout, *corev1.Pod) {
	r := fixture.New(1, fixture.App{Image: "v1"})
	pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1))
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	pod.Annotations = map[string]string{inplace.AnnotationMove: mark.String()}
	r.Seen.Mode = mode
	return *r, pod
}

// follow carries out the planned patches of the pod until there are none.
func follow(t *testing.T, r deployments.Rollout, pod *corev1.Pod) {
	t.Helper()
	for range 5 {
		r.Seen.DryRun = fixture.Admitted(r.UpdateRevision())
		plan := r.Plan()
		if plan.DryRun != nil {
			r.Seen.OldDryRun = fixture.Admitted(r.UpdateRevision())
			plan = r.Plan()
		}
		for _, step := range plan.Steps {
			if patch, is := step.(steps.PatchPod); is {
				if err := fixture.Apply(pod, patch.Operations); err != nil {
					t.Fatalf("%s: %v", strings.TrimSpace(step.Describe()), err)
				}
				pod.Generation++
				pod.Status.ObservedGeneration = pod.Generation
			}
		}
	}
}

func patchesPods(step steps.Step) bool { _, is := step.(steps.PatchPod); return is }
