package concurrency

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const zone = "topology.kubernetes.io/zone"

// on returns pods by their names, as a@x1. The first letter of a node is its zone; a pod without a node has none.
func on(names string) (pods []Pod) {
	for name := range strings.FieldsSeq(names) {
		_, node, _ := strings.Cut(name, "@")
		pod := Pod{UID: types.UID(name), Node: node}
		if node != "" {
			pod.Labels = map[string]string{zone: node[:1]}
		}
		pods = append(pods, pod)
	}
	return pods
}

// TestLimitsLeave: of the pods that ask, in that order, as many may restart as the limits leave besides those that are out of service. The
// strictest limit decides.
func TestLimitsLeave(t *testing.T) {
	total := func(most int) Limits { return Limits{{Flag: FlagTotal, Most: most}} }
	perNode := func(most int) Limits { return Limits{{Flag: FlagPerNode, Most: most}} }
	perZone := func(most int) Limits { return Limits{{FlagPerTopology, zone, most}} }
	for name, test := range map[string]struct {
		limits           Limits
		out, asks, given string
	}{
		"there is room":             {total(3), "a", "b c", "b c"},
		"the first one":             {total(2), "a", "b c", "b"},
		"no room":                   {total(1), "a", "b c", ""},
		"more are out than may be":  {total(1), "a b", "c", ""},
		"one is out already":        {total(1), "a", "b a", "a"},
		"one asks twice":            {total(2), "", "a a b", "a a b"},
		"a node is full":            {perNode(1), "a@x1", "b@x1 c@x2 d@x2", "c@x2"},
		"no node yet":               {perNode(1), "", "a b", "a"},
		"a zone is full":            {perZone(1), "a@x1", "b@x2 c@y1 d@y2", "c@y1"},
		"nodes without a zone":      {perZone(1), "a", "b c@x1", "c@x1"},
		"the zone, though few":      {slices.Concat(total(9), perZone(1)), "a@x1", "b@x2 c@y1", "c@y1"},
		"all, though on many nodes": {slices.Concat(total(2), perNode(1)), "a@x1", "b@x2 c@y1", "b@x2"},
	} {
		share, given := test.limits.Share(on(test.out)...), []string{}
		for _, pod := range on(test.asks) {
			if share.Exceeded(pod) == nil {
				share.Count(pod)
				given = append(given, string(pod.UID))
			}
		}
		if got := strings.Join(given, " "); got != test.given {
			t.Errorf("%s: %q may restart, want %q", name, got, test.given)
		}
	}
}

// TestShare: a plan may take what is left after others, each pod once; a pod that does not serve needs nothing.
func TestShare(t *testing.T) {
	node := &corev1.Node{}
	node.Labels = map[string]string{zone: "x"}
	for name, test := range map[string]struct {
		limits Limits
		takes  []*corev1.Pod
		pod    *corev1.Pod
		want   string
	}{
		"one is left": {limits: Limits{{Flag: FlagTotal, Most: 2}}, pod: running()},
		"it is taken": {Limits{{Flag: FlagTotal, Most: 2}}, []*corev1.Pod{another()}, running(),
			"other pods: as many restart as --max-restarting-pods allows (2)"},
		"taken already":         {limits: Limits{{Flag: FlagTotal, Most: 2}}, takes: []*corev1.Pod{running()}, pod: running()},
		"it does not serve":     {limits: Limits{{Flag: FlagTotal, Most: 2}}, takes: []*corev1.Pod{another()}, pod: running(unready)},
		"the unready count not": {limits: Limits{{Flag: FlagTotal, Most: 2}}, takes: []*corev1.Pod{running(unready)}, pod: another()},
		"one on the node": {Limits{{Flag: FlagPerNode, Most: 1}}, []*corev1.Pod{another()}, running(),
			"other pods: as many restart on node x1 as --max-restarting-pods-per-node allows (1)"},
		"one in the zone": {Limits{{FlagPerTopology, zone, 1}}, []*corev1.Pod{another()}, running(),
			"other pods: as many restart on nodes with topology.kubernetes.io/zone=x as --max-restarting-pods-per-topology allows (1)"},
	} {
		share := test.limits.Share(on("b/web-0@y1")...)
		for _, taken := range test.takes {
			share.Reserve(taken, node, now)
		}
		got := ""
		if wait := share.Wait(test.pod, node, now); wait != nil {
			got = wait.Why
			if wait.Again != 10*time.Second {
				t.Errorf("%s: the next look is in %s", name, wait.Again)
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if wait := (Limits{}).Share(on("a")...).Wait(running(), nil, now); wait != nil {
		t.Errorf("without limits it waits for %q", wait.Why)
	}
}

func another() *corev1.Pod {
	pod := running()
	pod.UID = "other-" + pod.UID
	return pod
}

func TestPerTopology(t *testing.T) {
	for text, want := range map[string]Limit{
		zone + "=3":  {FlagPerTopology, zone, 3},
		"rack=1":     {FlagPerTopology, "rack", 1},
		"rack=0":     {},
		"rack=-1":    {},
		"rack=few":   {},
		"rack":       {},
		"=3":         {},
		"a rack=3":   {},
		zone + "=3=": {},
	} {
		got, err := PerTopology(text)
		if got != want || (err != nil) != (want == Limit{}) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}
