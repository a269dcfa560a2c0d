package daemonsets_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// loses stops the kubelets of nodes. The node controller says that the pods there, which have the same number, are not Ready.
func loses(f *fixture.Fleet, nodes ...string) {
	for _, name := range nodes {
		f.Away(name)
		for _, pod := range f.Seen.Pods {
			if pod.Spec.NodeName == name {
				fixture.Unready(pod)
			}
		}
	}
}

// TestUnreachableNodesThatAreSkipped: of four nodes one may be unavailable, and one or more are away.
func TestUnreachableNodesThatAreSkipped(t *testing.T) {
	skips := func(f *fixture.Fleet) { f.Seen.Settings.SkipsUnreachable = true }
	for name, test := range map[string]struct {
		change func(*fixture.Fleet)
		want   []string // which pods are updated, one after the other
	}{
		"not asked for":                   {func(f *fixture.Fleet) { f.Seen.Settings.SkipsUnreachable = false; loses(f, "n2") }, nil},
		"one":                             {func(f *fixture.Fleet) { loses(f, "n2") }, []string{"p1", "p3", "p4"}},
		"most":                            {func(f *fixture.Fleet) { loses(f, "n1", "n2", "n4") }, []string{"p3"}},
		"all":                             {func(f *fixture.Fleet) { loses(f, "n1", "n2", "n3", "n4") }, nil},
		"its pod counts as available yet": {func(f *fixture.Fleet) { f.Away("n2") }, []string{"p1", "p3", "p4"}},
		"without a pod": {func(f *fixture.Fleet) { f.Away("n2"); f.Seen.Pods = slices.Delete(f.Seen.Pods, 1, 2) },
			[]string{"p1", "p3", "p4"}},
		"its pod is partially patched": {func(f *fixture.Fleet) {
			loses(f, "n2")
			f.Seen.Pods[1].Labels[inplace.LabelRevisionHash] = podstate.HashPartial
			f.Seen.Pods[1].Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "1"}.String()}
		}, nil},
		"its pod is updated": {func(f *fixture.Fleet) { loses(f, "n2"); f.Seen.Pods[1].Labels[inplace.LabelRevisionHash] = "2" }, nil},
		"a kubelet that reports NotReady": {func(f *fixture.Fleet) {
			loses(f, "n2")
			f.Node("n2").Status.Conditions[0].Status = corev1.ConditionFalse
		}, []string{"p2"}},
		"another pod does not serve": {func(f *fixture.Fleet) { loses(f, "n2"); f.Ail("p1") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 4)
			skips(f)
			test.change(f)
			f.Edit(fixture.App{Image: "v2"})
			f.Rest()
			var updated []string
			for _, step := range f.Steps {
				if pod, is := strings.CutSuffix(step, " is 2 app=v2"); is && pod != f.Sick {
					updated = append(updated, pod)
				}
			}
			if !slices.Equal(updated, test.want) {
				t.Errorf("%q are updated, want %q: %q", updated, test.want, f.Steps)
			}
			f.MayDelete(nil)
		})
	}
}

// TestAnUpdateThatTakesNodesAway: each node stops reporting when its pod is updated. So no more nodes follow than may be unavailable. The
// next edit does not wait for them.
func TestAnUpdateThatTakesNodesAway(t *testing.T) {
	f := fixture.NewFleet(t, 4, fixture.MaxUnavailable("2"))
	f.Seen.Settings.SkipsUnreachable = true
	f.Edit(fixture.App{Image: "v2"})
	for range 20 {
		f.Once()
		for _, pod := range f.Seen.Pods {
			if pod.Labels[inplace.LabelRevisionHash] == "2" {
				loses(f, pod.Spec.NodeName)
			}
		}
	}
	f.Edit(fixture.App{Image: "v3"})
	f.Rest()
	f.Steps = slices.DeleteFunc(f.Steps, func(step string) bool { return strings.HasPrefix(step, "mark ") })
	f.Expect("out p1", "out p2", "p1 is 2 app=v2", "p2 is 2 app=v2", "out p3", "out p4", "p3 is 3 app=v3", "p4 is 3 app=v3")
}

// TestANodeReturnsMidUpdate: its pod goes first, as it does not serve, and no other pod begins before it does.
func TestANodeReturnsMidUpdate(t *testing.T) {
	f := fixture.NewFleet(t, 4)
	f.Seen.Settings.SkipsUnreachable = true
	loses(f, "n4")
	f.Edit(fixture.App{Image: "v2"})
	for !slices.Contains(f.Steps, "p1 is 2 app=v2") {
		f.Once()
	}
	if told := f.PodProgress()[3]; told.Phase != podstate.Waiting || told.Awaits != "its node, which is unreachable" {
		t.Errorf("p4 is %s and waits for %q", told.Phase, told.Awaits)
	}
	f.Node("n4").Status.Conditions[0].Status = corev1.ConditionTrue
	f.Sick = "p4" // its readiness probe takes its time
	for range 20 {
		f.Once()
	}
	f.Expect("mark 2 true false", "out p1", "p1 is 2 app=v2", "out p4", "p4 is 2 app=v2")
	f.Sick = ""
	f.Rest()
	f.Expect("out p2", "p2 is 2 app=v2", "out p3", "p3 is 2 app=v2", "mark 2 false false")
}
