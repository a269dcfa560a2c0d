package concurrency

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var now = time.Unix(1_000_000, 0)

const zone = "topology.kubernetes.io/zone"

// on returns pods by their names: namespace/name@node. The first letter of a node is its zone.
func on(names string) (pods []Pod) {
	for name := range strings.FieldsSeq(names) {
		namespace, _, _ := strings.Cut(name, "/")
		_, node, _ := strings.Cut(name, "@")
		pod := Pod{UID: types.UID(name), Namespace: namespace, Node: node}
		if node != "" {
			pod.Labels = map[string]string{zone: node[:1]}
		}
		pods = append(pods, pod)
	}
	return pods
}

// wants returns the request of a workload whose update began so many seconds ago.
func wants(ago, most int, pods string) Request {
	all := on(pods)
	workload, _, _ := strings.Cut(string(all[0].UID), "-")
	return Request{Workload: types.UID(workload), Namespace: all[0].Namespace, Started: now.Add(-time.Duration(ago) * time.Second), Pods: all,
		Most: most}
}

// promised has so many pods of the request told that they may restart.
func promised(pods int, request Request) Request {
	request.Promised = pods
	return request
}

// names returns the pods in order of their names.
func (p Permitted) names() string {
	var all []string
	for _, pods := range p {
		for _, pod := range pods {
			all = append(all, string(pod.UID))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestDivide(t *testing.T) {
	total := func(most int) Limits { return Limits{{Flag: FlagTotal, Most: most}} }
	perNode := func(most int) Limits { return Limits{{Flag: FlagPerNode, Most: most}} }
	perZone := Limits{{Flag: FlagPerTopology, TopologyKey: zone, Most: 2}}
	for name, test := range map[string]struct {
		limits     Limits
		restarting string
		requests   []Request
		latest     map[string]int
		want       string
	}{
		"none waits":      {limits: total(2), restarting: "a/web-0"},
		"there is room":   {total(3), "a/web-0", []Request{wants(1, 9, "b/web-0 b/web-1")}, nil, "b/web-0 b/web-1"},
		"no room":         {total(1), "a/web-0", []Request{wants(1, 9, "b/web-0")}, nil, ""},
		"more than ever":  {total(1), "a/web-0 a/web-1", []Request{wants(1, 9, "b/web-0")}, nil, ""},
		"at most so many": {total(9), "", []Request{wants(1, 1, "a/web-0 a/web-1")}, nil, "a/web-0"},
		"namespaces take turns": {total(4), "",
			[]Request{wants(9, 9, "a/web-0 a/web-1 a/web-2"), wants(8, 9, "a/old-0"), wants(1, 9, "b/web-0 b/web-1")}, nil,
			"a/web-0 a/web-1 b/web-0 b/web-1"},
		"the namespace with fewer comes first": {total(3), "a/web-0 a/web-1", []Request{wants(9, 9, "a/web-2"), wants(1, 9, "b/web-0")}, nil,
			"b/web-0"},
		"the one that came last waits": {total(1), "", []Request{wants(9, 9, "a/web-0"), wants(1, 9, "b/web-0")}, map[string]int{"a": 7, "b": 3},
			"b/web-0"},
		"the oldest update of a namespace": {total(1), "", []Request{wants(1, 9, "a/new-0"), wants(9, 9, "a/old-0")}, nil, "a/old-0"},
		"one on each node": {perNode(1), "a/web-0@x1", []Request{wants(1, 9, "b/web-0@x1 b/web-1@x2 b/web-2@x2 b/web-3@y1")}, nil,
			"b/web-1@x2 b/web-3@y1"},
		"the older update has no node": {perNode(1), "a/web-0@x1", []Request{wants(9, 9, "a/old-0@x1"), wants(1, 9, "a/new-0@x2")}, nil,
			"a/new-0@x2"},
		"two in each zone": {perZone, "a/web-0@x1", []Request{wants(1, 9, "b/web-0@x1 b/web-1@x2 b/web-2@y1 b/web-3@y2 b/web-4@y3")}, nil,
			"b/web-0@x1 b/web-2@y1 b/web-3@y2"},
		"the strictest limit counts": {append(total(2), perZone...), "", []Request{wants(1, 9, "b/web-0@x1 b/web-1@y1 b/web-2@z1")}, nil,
			"b/web-0@x1 b/web-1@y1"},
		"a promise is kept": {total(2), "b/web-0", []Request{wants(9, 9, "a/web-0"), promised(1, wants(1, 9, "b/web-1 b/web-2"))}, nil,
			"b/web-1"},
		"and no more than that": {total(3), "b/web-0", []Request{wants(9, 9, "a/web-0"), promised(1, wants(1, 9, "b/web-1 b/web-2"))}, nil,
			"a/web-0 b/web-1"},
		"unless there is no room": {total(1), "b/web-0", []Request{promised(1, wants(1, 9, "b/web-1"))}, nil, ""},
		"no limit":                {nil, "", []Request{wants(1, 2, "b/web-0 b/web-1 b/web-2")}, nil, "b/web-0 b/web-1"},
	} {
		seen := Seen{Limits: test.limits, Restarting: on(test.restarting), Requests: test.requests, Latest: test.latest}
		if got := seen.Divide().names(); got != test.want {
			t.Errorf("%s: %q may restart, want %q", name, got, test.want)
		}
	}
}

// crowd returns workloads with pods that wait, in several namespaces.
func crowd(random *rand.Rand) map[types.UID]Request {
	waiting := map[types.UID]Request{}
	for i := range 12 {
		var pods []string
		for p, space := 0, random.Intn(3); p < 1+random.Intn(4); p++ {
			pods = append(pods, fmt.Sprintf("n%d/w%d-%d", space, i, p))
		}
		if len(pods) > 0 {
			request := wants(i, 1, strings.Join(pods, " "))
			waiting[request.Workload] = request
		}
	}
	return waiting
}

// TestNoNamespaceStarves restarts the pods of many workloads in several namespaces. As many restart at a time as may, and no more.
// Namespaces take turns, and each of them goes through its updates from the oldest to the newest.
func TestNoNamespaceStarves(t *testing.T) {
	const most = 2
	for seed := range int64(200) {
		seen := Seen{Limits: Limits{{Flag: FlagTotal, Most: most}}, Latest: map[string]int{}}
		waiting, latest := crowd(rand.New(rand.NewSource(seed))), map[string]time.Time{}
		for number := 1; len(waiting) > 0; number++ {
			if len(seen.Restarting) == most {
				seen.Restarting = slices.Delete(seen.Restarting, 0, 1)
			}
			seen.Requests = slices.Collect(maps.Values(waiting))
			permitted := seen.Divide()
			if given := len(strings.Fields(permitted.names())); given+len(seen.Restarting) > most || given == 0 {
				t.Fatalf("seed %d: %d restart, and %d more may", seed, len(seen.Restarting), given)
			}
			workload := slices.Min(slices.Collect(maps.Keys(permitted)))
			request, pod := waiting[workload], permitted[workload][0]
			if request.Started.Before(latest[request.Namespace]) {
				t.Errorf("seed %d: %s comes after a newer update", seed, workload)
			}
			for _, other := range waiting {
				if ago := number - seen.Latest[other.Namespace]; ago > 2*most+3 {
					t.Errorf("seed %d: %d permissions went to others than %s", seed, ago, other.Namespace)
				}
			}
			seen.Restarting, seen.Latest[pod.Namespace], latest[pod.Namespace] = append(seen.Restarting, pod), number, request.Started
			if request.Pods = request.Pods[1:]; len(request.Pods) > 0 {
				waiting[workload] = request
			} else {
				delete(waiting, workload)
			}
		}
	}
}

// TestTheBoundIsDivided: each namespace has its part of the bound, at least one pod. What one does not need others may have.
func TestTheBoundIsDivided(t *testing.T) {
	for name, test := range map[string]struct {
		bound      int
		restarting string
		requests   []Request
		want       string
	}{
		"there is room":          {3, "a/web-0", []Request{wants(1, 9, "a/web-1 a/web-2 a/web-3")}, "a/web-1 a/web-2"},
		"it is used up":          {2, "a/web-0 a/web-1", []Request{wants(1, 9, "a/web-2")}, ""},
		"a slow pod leaves room": {2, "a/web-0 a/web-slow", []Request{wants(1, 9, "a/web-2 a/web-3")}, "a/web-2"},
		"another namespace begins": {4, "a/web-0 a/web-1 a/web-2 a/web-3",
			[]Request{wants(9, 9, "a/web-4"), wants(1, 9, "b/web-0 b/web-1 b/web-2")}, "b/web-0 b/web-1"},
		"more namespaces than places": {1, "a/web-0", []Request{wants(9, 9, "a/web-1"), wants(2, 9, "b/web-0 b/web-1"), wants(1, 9, "c/web-0")},
			"b/web-0 c/web-0"},
	} {
		seen := Seen{Bound: test.bound, Restarting: on(test.restarting), Requests: test.requests}
		for i := range seen.Restarting {
			seen.Restarting[i].Slow = strings.HasSuffix(string(seen.Restarting[i].UID), "-slow")
		}
		if got := seen.Divide().names(); got != test.want {
			t.Errorf("%s: %q may restart, want %q", name, got, test.want)
		}
	}
}

func TestPerTopology(t *testing.T) {
	limit, err := PerTopology("topology.kubernetes.io/zone=3")
	if err != nil || limit != (Limit{FlagPerTopology, zone, 3}) {
		t.Errorf("%+v, %v", limit, err)
	}
	for _, text := range []string{"", "3", "zone", "zone=", "zone=0", "zone=-1", "zone=x", "a b=1", "=1"} {
		if _, err := PerTopology(text); err == nil || !strings.Contains(err.Error(), "write topology.kubernetes.io/zone=3") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestANamespaceWithoutPartIsPassed: if a namespace has used up its part of the bound, its other pods are not looked at one by one. Where
// thousands wait, the leader would be late with just that, in each plan.
func TestANamespaceWithoutPartIsPassed(t *testing.T) {
	waiting := func() *turn {
		return Seen{Requests: []Request{wants(9, 3, "a/old-1 a/old-2 a/old-3"), wants(1, 2, "a/new-1 a/new-2")}}.turns()[0]
	}
	for name, test := range map[string]struct {
		seen Seen
		left int
	}{
		"its part is used up":        {Seen{Bound: 1, Restarting: on("a/x b/x")}, 4},
		"another limit keeps it":     {Seen{Limits: Limits{{Flag: FlagPerNode, Most: 2}}, Restarting: on("a/x b/x")}, 0},
		"another limit, and no part": {Seen{Bound: 1, Limits: Limits{{Flag: FlagTotal, Most: 3}}, Restarting: on("a/x b/x")}, 4},
	} {
		one, left := waiting(), 0
		if _, pod := one.next(test.seen.tally(), (*queued).any); pod.UID != "" {
			t.Errorf("%s: %s may restart", name, pod.UID)
		}
		for _, request := range one.requests {
			left += len(request.Pods)
		}
		if left != test.left {
			t.Errorf("%s: %d pods were not looked at, want %d", name, left, test.left)
		}
	}
}
