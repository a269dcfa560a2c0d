package daemonsets_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestLeadersGoLast: p1 goes last, though its name is the first.
func TestLeadersGoLast(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fixture.Fleet)
		want   []string
	}{
		"two may be unavailable": {func(*fixture.Fleet) {}, []string{"mark 2 true false", "out p2", "p2 is 2 app=v2", "out p1",
			"p1 is 2 app=v2", "mark 2 false false"}},
		"one may be unavailable": {fixture.MaxUnavailable("1"), []string{"mark 2 true false", "out p2", "p2 is 2 app=v2",
			"out p1", "p1 is 2 app=v2", "mark 2 false false"}},
		"the other is on an unreachable node": {func(f *fixture.Fleet) { f.Away("n2"); fixture.Unready(f.Seen.Pods[1]) },
			[]string{"mark 2 true false", "out p1", "p1 is 2 app=v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 2, fixture.MaxUnavailable("2"))
			f.DaemonSet.Annotations = map[string]string{inplace.AnnotationUpdateLast: "role=leader"}
			f.Seen.Pods[0].Labels["role"] = "leader"
			test.change(f)
			f.Edit(fixture.App{Image: "v2"})
			f.Rest()
			f.Expect(test.want...)
		})
	}
}

// TestLeaderIsNoneForever: the pods' labels at the moment count, so the role may go to another pod in the middle of an update.
func TestLeaderIsNoneForever(t *testing.T) {
	f := fixture.NewFleet(t, 3)
	f.DaemonSet.Annotations = map[string]string{inplace.AnnotationUpdateLast: "role=leader"}
	lead := func(leader *corev1.Pod) {
		for _, pod := range f.Seen.Pods {
			delete(pod.Labels, "role")
		}
		leader.Labels["role"] = "leader"
	}
	lead(f.Seen.Pods[0])
	f.Edit(fixture.App{Image: "v2"})
	f.Once()
	f.Once()
	lead(f.Seen.Pods[2])
	f.Rest()
	f.Expect("mark 2 true false", "out p2", "p2 is 2 app=v2", "out p1", "p1 is 2 app=v2",
		"out p3", "p3 is 2 app=v2", "mark 2 false false")
}

// TestLeaderDoesNotHoldThePrePullOfOthers: only one node may have a pre-pull pod that waits for its turn. The pod there becomes the leader,
// and waits for the other one, whose node has to pull.
func TestLeaderDoesNotHoldThePrePullOfOthers(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.DaemonSet.Annotations = map[string]string{inplace.AnnotationUpdateLast: "role=leader"}
	f.PullsFirst(1)
	f.Edit(fixture.App{Image: "v2"})
	f.Once()
	f.Once()
	f.Seen.Pods[0].Labels["role"] = "leader"
	f.Rest()
	f.Expect("mark 2 true false", "pull n1", "pull n2", "out p2", "p2 is 2 app=v2", "drop n2",
		"out p1", "p1 is 2 app=v2", "mark 2 false false", "drop n1")
}
