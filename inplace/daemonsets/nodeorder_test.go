package daemonsets_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
)

// canaries and byZone ask for an order of nodes.
var (
	canaries = map[string]string{inplace.AnnotationCanaryNodes: "canary=yes"}
	byZone   = map[string]string{inplace.AnnotationUpdateByTopology: "zone"}
)

// nodesAre labels the nodes n1, n2 …: "canary" is a canary node, another text is a zone, and "" has no label.
func nodesAre(f *fixture.Fleet, labels ...string) {
	for i, label := range labels {
		switch node := f.Seen.Nodes[i]; label {
		case "":
		case "canary":
			node.Labels = map[string]string{"canary": "yes"}
		default:
			node.Labels = map[string]string{"zone": label}
		}
	}
}

// restarted are the steps in which these pods restart one after the other.
func restarted(pods ...string) []string {
	var made []string
	for _, pod := range pods {
		made = append(made, "out "+pod, pod+" is 2 app=v2")
	}
	return made
}

// together are the steps in which these pods restart side by side.
func together(pods ...string) []string {
	var out, patched []string
	for _, pod := range pods {
		out, patched = append(out, "out "+pod), append(patched, pod+" is 2 app=v2")
	}
	return slices.Concat(out, patched)
}

// TestNodesInOrder: three pods may be unavailable.
func TestNodesInOrder(t *testing.T) {
	begins, ends := []string{"mark 2 true false"}, []string{"mark 2 false false"}
	whole := func(made ...[]string) []string { return slices.Concat(begins, slices.Concat(made...), ends) }
	part := func(made ...[]string) []string { return slices.Concat(begins, slices.Concat(made...)) }
	atPartition := func(made ...[]string) []string { return append([]string{"mark 1 false false"}, part(made...)...) }
	anyOrder := whole(together("p1", "p2", "p3"))
	for name, test := range map[string]struct {
		annotations map[string]string
		nodes       []string
		change      func(*fixture.Fleet)
		want        []string
	}{
		"no order":               {nil, []string{"", "canary", "a"}, nil, anyOrder},
		"a canary node":          {canaries, []string{"", "canary", ""}, nil, whole(restarted("p2"), together("p1", "p3"))},
		"two":                    {canaries, []string{"", "canary", "canary"}, nil, whole(together("p2", "p3"), restarted("p1"))},
		"all":                    {canaries, []string{"canary", "canary", "canary"}, nil, anyOrder},
		"none":                   {canaries, []string{"", "", ""}, nil, anyOrder},
		"not a selector":         {map[string]string{inplace.AnnotationCanaryNodes: "canary="}, []string{"", "canary", ""}, nil, anyOrder},
		"no node is known":       {canaries, []string{"", "canary", ""}, func(f *fixture.Fleet) { f.Seen.Nodes = nil }, anyOrder},
		"zones":                  {byZone, []string{"b", "", "a"}, nil, whole(restarted("p3", "p1", "p2"))},
		"two nodes in a zone":    {byZone, []string{"b", "a", "b"}, nil, whole(restarted("p2"), together("p1", "p3"))},
		"not a key":              {map[string]string{inplace.AnnotationUpdateByTopology: "zone=a"}, []string{"b", "a", "b"}, nil, anyOrder},
		"one may be unavailable": {byZone, []string{"b", "b", "a"}, fixture.MaxUnavailable("1"), whole(restarted("p3", "p1", "p2"))},
		"a partition that keeps one pod": {canaries, []string{"", "", "canary"}, func(f *fixture.Fleet) { f.AtPartition("1") },
			atPartition(restarted("p3", "p1"))},
		"a partition that keeps a canary, too": {canaries, []string{"", "canary", "canary"}, func(f *fixture.Fleet) { f.AtPartition("2") },
			atPartition(restarted("p2"))},
		"the canary node is unreachable": {canaries, []string{"", "canary", ""}, func(f *fixture.Fleet) {
			f.Away("n2")
			fixture.Unready(f.Seen.Pods[1])
		}, part(together("p1", "p3"))},
		"the canary node is unreachable, and its pod counts as available": {canaries, []string{"", "canary", ""},
			func(f *fixture.Fleet) { f.Away("n2") }, part(together("p1", "p3"))},
		"the canary node has no pod": {canaries, []string{"", "canary", ""}, func(f *fixture.Fleet) {
			f.Seen.Pods = slices.Delete(f.Seen.Pods, 1, 2)
		}, whole(together("p1", "p3"))},
		"the pod there must be replaced": {canaries, []string{"", "canary", ""}, func(f *fixture.Fleet) {
			f.Seen.Pods[1].Labels[inplace.LabelRevisionHash] = "gone"
		}, part(together("p1", "p3"), []string{"mark 2 false true"})},
		"a later pod does not serve": {canaries, []string{"", "canary", ""}, func(f *fixture.Fleet) { f.Ail("p3") },
			whole([]string{"out p3", "out p2", "p2 is 2 app=v2", "p3 is 2 app=v2", "out p1", "p1 is 2 app=v2"})},
		"the pod there goes last": {map[string]string{inplace.AnnotationCanaryNodes: "canary", inplace.AnnotationUpdateLast: "role=leader"},
			[]string{"canary", "canary", ""}, func(f *fixture.Fleet) { f.Seen.Pods[0].Labels["role"] = "leader" },
			whole(restarted("p2", "p3", "p1"))},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 3, fixture.MaxUnavailable("3"))
			f.DaemonSet.Annotations = test.annotations
			nodesAre(f, test.nodes...)
			if test.change != nil {
				test.change(f)
			}
			f.Edit(fixture.App{Image: "v2"})
			f.Rest()
			f.Expect(test.want...)
		})
	}
}

// TestCanaryThatFails: the pods on other nodes stay as they are, and the undo of the image gets through.
func TestCanaryThatFails(t *testing.T) {
	f := fixture.NewFleet(t, 3, fixture.MaxUnavailable("3"))
	f.DaemonSet.Annotations = canaries
	nodesAre(f, "", "canary", "")
	f.Edit(fixture.App{Image: "bad"})
	f.Rest()
	f.Expect("mark 2 true false", "out p2", "p2 is 2 app=bad")
	waits := func(pod int, phase podstate.PodPhase, want string) {
		t.Helper()
		if told := f.PodProgress(); told[pod].Phase != phase || told[pod].Awaits != want {
			t.Errorf("%s is %s and waits for %q, not %q", told[pod].Pod.Name, told[pod].Phase, told[pod].Awaits, want)
		}
	}
	waits(0, podstate.Updating, "its containers to restart")
	waits(1, podstate.Waiting, "pod p2 on node n2 (a canary node) to be updated and available")
	waits(2, podstate.Waiting, "pod p2 on node n2 (a canary node) to be updated and available")
	f.Edit(fixture.App{Image: "v1"})
	f.Rest()
	f.UpdatedAll("1", "app=v1")
}

// TestNextZoneWaitsForMinReadySeconds: a zone is done when its pods have been Ready for minReadySeconds.
func TestNextZoneWaitsForMinReadySeconds(t *testing.T) {
	f := fixture.NewFleet(t, 2, fixture.MaxUnavailable("2"))
	f.DaemonSet.Annotations, f.DaemonSet.Spec.MinReadySeconds = byZone, 60
	nodesAre(f, "b", "a")
	f.Edit(fixture.App{Image: "v2"})
	for f.Seen.Pods[1].Labels[inplace.LabelRevisionHash] != "2" || !apps.IsTrue(f.Seen.Pods[1], corev1.PodReady) {
		f.Once()
	}
	apps.Condition(f.Seen.Pods[1], corev1.PodReady).LastTransitionTime.Time = f.Seen.Now
	f.Rest()
	f.Expect("mark 2 true false", "out p2", "p2 is 2 app=v2")
	if told := f.PodProgress()[1]; told.Awaits != "pod p2 on node n2 (zone=a) to be updated and available" {
		t.Errorf("p1 waits for %q", told.Awaits)
	}
	f.Seen.Now = f.Seen.Now.Add(time.Minute)
	f.Rest()
	f.Expect("mark 2 true false", "out p1", "p1 is 2 app=v2", "mark 2 false false")
}

// TestCanaryIsResizedFirst: a resize may do as much harm as a restart.
func TestCanaryIsResizedFirst(t *testing.T) {
	f := fixture.NewSizedFleet(t, 2)
	fixture.MaxUnavailable("2")(f)
	f.DaemonSet.Annotations = canaries
	nodesAre(f, "", "canary")
	f.Edit(fixture.App{Image: "v1", CPU: "200m"})
	f.Rest()
	f.Expect("mark 2 true false", "p2 is updating-in-place app=v1", "p2 gets 200m", "p2 is 2 app=v1",
		"p1 is updating-in-place app=v1", "p1 gets 200m", "p1 is 2 app=v1", "mark 2 false false")
}

// TestCanaryThatIsInfeasible: no pod waits for one that its node has no room for.
func TestCanaryThatIsInfeasible(t *testing.T) {
	f := fixture.NewSizedFleet(t, 2)
	f.DaemonSet.Annotations = canaries
	nodesAre(f, "", "canary")
	f.Small("150m", "n2")
	f.Edit(fixture.App{Image: "v1", CPU: "200m"})
	f.Once()
	f.Once()
	f.Expect("mark 2 true false", "p1 is updating-in-place app=v1")
}

// TestCanaryThatAwaitsCapacity: no pod waits for one that its kubelet has no capacity for now, and perhaps never.
func TestCanaryThatAwaitsCapacity(t *testing.T) {
	f := fixture.NewSizedFleet(t, 2)
	fixture.MaxUnavailable("2")(f)
	f.DaemonSet.Annotations, f.Short = canaries, true
	nodesAre(f, "", "canary")
	f.Edit(fixture.App{Image: "v1", CPU: "200m"})
	f.Rest()
	f.Expect("mark 2 true false", "p2 is updating-in-place app=v1", "p2 gets 200m", "p1 is updating-in-place app=v1", "p1 gets 200m")
}

// TestLabelsOfNodesChangeMeanwhile: the labels that nodes have now count, also where only one node may have a pre-pull pod that waits for
// its turn.
func TestLabelsOfNodesChangeMeanwhile(t *testing.T) {
	f := fixture.NewFleet(t, 3)
	f.DaemonSet.Annotations = canaries
	f.PullsFirst(1)
	f.Edit(fixture.App{Image: "v2"})
	f.Once()
	f.Once()
	f.Expect("mark 2 true false", "pull n1")
	f.Pull.Nodes[2].Labels = map[string]string{"canary": "yes"}
	f.Rest()
	f.Expect("pull n3", "out p3", "p3 is 2 app=v2", "drop n3", "out p1", "pull n2", "p1 is 2 app=v2", "drop n1",
		"out p2", "p2 is 2 app=v2", "mark 2 false false", "drop n2")
}

// TestNoChangeInOrder: what restarts nothing waits for no node.
func TestNoChangeInOrder(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.DaemonSet.Annotations = byZone
	nodesAre(f, "b", "a")
	f.Edit(fixture.App{Image: "v1", Chart: "c2"})
	f.Rest()
	f.Expect("mark 2 true false", "p2 is 2 app=v1", "p1 is 2 app=v1", "mark 2 false false")
}
