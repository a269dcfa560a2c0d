package deployments_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// oneAndSurge is a Deployment of one pod, none of which may be unavailable, whose pod has the update revision. So the surge pod is to be
// removed. It belongs to the ReplicaSet with that hash: "b" is the new one.
func oneAndSurge(pod, surge func(*corev1.Pod), hash string) *deployments.Rollout {
	r := fixture.New(1, fixture.App{Image: "v2"})
	r.Seen.Settings.Surge = inplace.SurgeNeeded
	r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(0))
	a, b := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 0), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
	fixture.PodOf(r, "pod", b, pod)
	owner := a
	if hash == "b" {
		owner = b
	}
	*owner.Spec.Replicas++
	owner.Status.Replicas++
	owner.Labels[inplace.LabelSurgeReplicas] = "1"
	a.Labels[inplace.LabelUpdating], b.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
	fixture.PodOf(r, "surge", owner, func(pod *corev1.Pod) {
		pod.Annotations, pod.Spec.NodeName = map[string]string{inplace.AnnotationSurgePod: "true"}, "node-1"
	}, surge)
	return r
}

// TestSurgePodIsRemoved: a surge pod that has a node stays until as many pods serve as must, also while it does not serve itself: it may
// serve again before the others do. A surge pod of an old ReplicaSet that does not serve goes: it proves nothing.
func TestSurgePodIsRemoved(t *testing.T) {
	unplaced := func(pod *corev1.Pod) {
		fixture.Unready(pod)
		pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
	}
	unconfirmed := func(long time.Duration) func(*corev1.Pod) {
		return fixture.AheadSince(fixture.Start.Add(-long - time.Second))
	}
	for name, test := range map[string]struct {
		rollout *deployments.Rollout
		goes    bool
	}{
		"both serve":                       {oneAndSurge(nil, nil, "b"), true},
		"only the surge pod serves":        {oneAndSurge(fixture.Drained, nil, "b"), false},
		"only the other pod serves":        {oneAndSurge(nil, fixture.Unready, "b"), true},
		"its kubelet does not confirm it":  {oneAndSurge(unconfirmed(readiness.Lasts), nil, "b"), false},
		"its kubelet will not confirm it":  {oneAndSurge(unconfirmed(readiness.LastsUnconfirmed), nil, "b"), true},
		"neither serves":                   {oneAndSurge(fixture.Drained, fixture.Unready, "b"), false},
		"neither serves, it has no node":   {oneAndSurge(fixture.Drained, unplaced, "b"), true},
		"neither serves, it is an old one": {oneAndSurge(fixture.Unready, fixture.Unready, "a"), true},
	} {
		t.Run(name, func(t *testing.T) {
			planned := fixture.Brief(test.rollout.Plan().Steps)
			if goes := strings.Contains(planned, "move surge") || strings.Contains(planned, "close surge"); goes != test.goes {
				t.Errorf("the surge pod goes: %t, want %t: %s", goes, test.goes, planned)
			}
		})
	}
}

// TestSurgePodsLetMorePodsRestart: where pods may be unavailable, each surge pod that serves lets one more restart, and nothing waits for
// surge pods. They go when the last pods have their turns.
func TestSurgePodsLetMorePodsRestart(t *testing.T) {
	for name, test := range map[string]struct {
		pods  []string
		surge func(*corev1.Pod)
		want  string
	}{
		"the surge pod serves":                {[]string{"1", "2", "3"}, nil, "status, close 1, close 2"},
		"it does not serve yet":               {[]string{"1", "2", "3"}, fixture.Unready, "status, close 1"},
		"it serves, and both pods have turns": {[]string{"1", "2"}, nil, "status, move surge, close 1, close 2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(int32(len(test.pods)), fixture.App{Image: "v2"})
			r.Seen.Settings.Surge = inplace.SurgeAlways
			one := new(intstr.FromInt32(1))
			r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable, r.Deployment.Spec.Strategy.RollingUpdate.MaxSurge = one, one
			a := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, int32(len(test.pods)))
			b := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
			a.Labels[inplace.LabelUpdating], b.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
			b.Labels[inplace.LabelSurgeReplicas] = "1"
			for _, pod := range test.pods {
				fixture.PodOf(r, pod, a)
			}
			fixture.PodOf(r, "surge", b, func(pod *corev1.Pod) {
				pod.Annotations, pod.Spec.NodeName = map[string]string{inplace.AnnotationSurgePod: "true"}, "node-1"
			}, test.surge)
			if planned := fixture.Brief(r.Plan().Steps); planned != test.want {
				t.Errorf("planned %q, want %q", planned, test.want)
			}
		})
	}
}

// TestOneAtATimeWaitsForNoKubelet: where there is no room for a surge pod, one pod restarts at a time, and the next one waits only until
// Ready has lasted, as where one pod may be unavailable.
func TestOneAtATimeWaitsForNoKubelet(t *testing.T) {
	for note, want := range map[string]string{"": "", deployments.NoSurge: "close 2"} {
		r := fixture.New(2, fixture.App{Image: "v2"})
		r.Seen.Settings.Surge = inplace.SurgeNeeded
		r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromString("25%"))
		a, b := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
		a.Labels[inplace.LabelUpdating], b.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
		b.Labels[inplace.LabelSurgeReplicas] = note
		fixture.PodOf(r, "1", b, fixture.AheadSince(fixture.Start.Add(-readiness.Lasts-time.Second)))
		fixture.PodOf(r, "2", a)
		closes := slices.DeleteFunc(r.Plan().Steps, func(step steps.Step) bool { return !steps.Closes(step) })
		if planned := fixture.Brief(closes); planned != want {
			t.Errorf("surge replicas %q: planned %q, want %q", note, planned, want)
		}
	}
}
