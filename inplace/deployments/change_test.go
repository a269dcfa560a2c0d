package deployments_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

// labelAfter returns that label of the ReplicaSets once the plan is carried out, oldest first.
func labelAfter(t *testing.T, r *deployments.Rollout, label string) (values []string) {
	t.Helper()
	for _, step := range r.Plan().Steps {
		if patch, is := step.(steps.PatchReplicaSet); is {
			if err := fixture.Apply(patch.ReplicaSet, patch.Operations); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, rs := range r.ReplicaSets {
		values = append(values, rs.Labels[label])
	}
	return values
}

// overdue has the progress deadline have passed.
func overdue(r *deployments.Rollout) {
	deployments.SetCondition(&r.Deployment.Status, deployments.NewCondition("Progressing", corev1.ConditionFalse, deployments.ReasonTimedOut,
		`ReplicaSet "web-b" has timed out progressing.`, fixture.Start))
}

// TestNoteThatThereIsNoRoomForSurgePods: maxUnavailable is a percentage that rounds to 0, so surge pods serve while others restart. Once
// the deadline has passed and the last of them is gone, the new ReplicaSet says that there is no room for them. Without that note the
// update would create them again and wait once more. With a wrong one, pods would restart although none may be unavailable.
func TestNoteThatThereIsNoRoomForSurgePods(t *testing.T) {
	late := []func(*deployments.Rollout){overdue}
	behind := func(r *deployments.Rollout) { r.ReplicaSets[0].Status.Replicas-- } // nothing else is begun meanwhile
	for name, test := range map[string]struct {
		notes   [2]string // of the old and the new ReplicaSet
		left    int32
		changes []func(*deployments.Rollout)
		want    [2]string
	}{
		"the last is gone":      {[2]string{"", "1"}, 0, late, [2]string{"", deployments.NoSurge}},
		"in time":               {[2]string{"", "1"}, 0, nil, [2]string{"", ""}},
		"one is left":           {[2]string{"", "2"}, 1, late, [2]string{"", "1"}},
		"there was none":        {[2]string{"", ""}, 0, append(late, behind), [2]string{"", ""}},
		"an earlier update had": {[2]string{"1", ""}, 0, late, [2]string{"", ""}},
	} {
		r := fixture.New(2, fixture.App{Image: "v2"})
		r.Seen.Settings.Surge = inplace.SurgeNeeded
		rolling := r.Deployment.Spec.Strategy.RollingUpdate
		rolling.MaxUnavailable, rolling.MaxSurge = new(intstr.FromString("1%")), new(intstr.FromInt32(2))
		a, b := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, test.left)
		for i, rs := range []*apps.ReplicaSet{a, b} {
			rs.Labels[inplace.LabelUpdating], rs.Labels[inplace.LabelSurgeReplicas] = fixture.Begun, test.notes[i]
		}
		fixture.PodOf(r, "p", a)
		fixture.PodOf(r, "q", a)
		for range test.left {
			fixture.PodOf(r, "surge", b, func(pod *corev1.Pod) { pod.Annotations = map[string]string{inplace.AnnotationSurgePod: "true"} })
		}
		for _, change := range test.changes {
			change(r)
		}
		if got := [2]string(labelAfter(t, r, inplace.LabelSurgeReplicas)); got != test.want {
			t.Errorf("%s: the notes are %q, want %q", name, got, test.want)
		}
	}
}

// TestWhatIsMarked: a mark has its ReplicaSet's deletions held, and is renewed until the update ends. So none is set as long as the user
// pauses the rollout, and none where nothing is left to update.
func TestWhatIsMarked(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*deployments.Rollout)
		want   [2]string
	}{
		"an update":          {func(*deployments.Rollout) {}, [2]string{fixture.Begun, fixture.Begun}},
		"the user pauses it": {func(r *deployments.Rollout) { r.Deployment.Spec.Paused = true }, [2]string{}},
		"only the note of a surge pod is left": {func(r *deployments.Rollout) {
			r.Deployment.Spec.Template = r.ReplicaSets[0].Spec.Template
			r.ReplicaSets[0].Labels[inplace.LabelSurgeReplicas] = "1"
		}, [2]string{}},
	} {
		r, _ := fixture.ToV2()
		test.change(r)
		if got := [2]string(labelAfter(t, r, inplace.LabelUpdating)); got != test.want {
			t.Errorf("%s: the marks are %q, want %q", name, got, test.want)
		}
	}
}
