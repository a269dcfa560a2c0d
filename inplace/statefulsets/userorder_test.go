package statefulsets_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestLeadersGoLast: the StatefulSet says that leaders go last. Without leaders, the highest ordinal goes first.
func TestLeadersGoLast(t *testing.T) {
	for name, test := range map[string]struct {
		selector string
		changes  []func(*fixture.Members)
		leaders  []int
		order    []string
	}{
		"none":                {"role=leader", nil, nil, []string{"db-2", "db-1", "db-0"}},
		"the highest":         {"role=leader", nil, []int{2}, []string{"db-1", "db-0", "db-2"}},
		"one in the middle":   {"role in (leader)", nil, []int{1}, []string{"db-2", "db-0", "db-1"}},
		"two":                 {"role=leader", nil, []int{2, 1}, []string{"db-0", "db-2", "db-1"}},
		"all":                 {"role=leader", nil, []int{2, 1, 0}, []string{"db-2", "db-1", "db-0"}},
		"an invalid selector": {"role=leader,", nil, []int{2}, []string{"db-2", "db-1", "db-0"}},
		"OnDelete":            {"role=leader", []func(*fixture.Members){onDeleteInPlace}, []int{2}, []string{"db-1", "db-0", "db-2"}},
		"above the native partition": {"role=leader", []func(*fixture.Members){fixture.Rolling(1, "")}, []int{2},
			[]string{"db-1", "db-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 3, test.changes...)
			m.StatefulSet.Annotations = map[string]string{inplace.AnnotationUpdateLast: test.selector}
			for _, ordinal := range test.leaders {
				m.Member(ordinal).Labels["role"] = "leader"
			}
			movesInOrder(m, test.order)
		})
	}
}

// movesInOrder edits the image, and demands that just these pods move to it, in that order.
func movesInOrder(m *fixture.Members, order []string) {
	m.T.Helper()
	m.Edit(fixture.App{Image: "v2"})
	m.Rest()
	want := []string{"mark 2 true false"}
	for _, pod := range order {
		want = append(want, drained(pod, "db-2", "v2")...)
	}
	m.Expect(slices.Concat(want, []string{"mark 2 false false"})...)
}

// TestLeaderWaitsForOthersToBegin: two pods may be unavailable, so the last two restart side by side.
func TestLeaderWaitsForOthersToBegin(t *testing.T) {
	m := fixture.NewMembers(t, 2, fixture.Rolling(0, "2"))
	m.StatefulSet.Annotations = map[string]string{inplace.AnnotationUpdateLast: "role=leader"}
	m.Member(1).Labels["role"] = "leader"
	m.Edit(fixture.App{Image: "v2"})
	m.Rest()
	m.Expect("mark 2 true false", "out db-0", "db-0 is db-2 app=v2",
		"out db-1", "db-1 is db-2 app=v2", "mark 2 false false")
}

// TestNodesInOrder: db-0 is on node n0, and so on. Within a stage the highest ordinal goes first.
func TestNodesInOrder(t *testing.T) {
	byZone := map[string]string{inplace.AnnotationUpdateByTopology: "zone"}
	for name, test := range map[string]struct {
		annotations map[string]string
		zones       []string
		changes     []func(*fixture.Members)
		order       []string
	}{
		"zones":         {byZone, []string{"b", "a", "b"}, nil, []string{"db-1", "db-2", "db-0"}},
		"the same zone": {byZone, []string{"a", "a", "a"}, nil, []string{"db-2", "db-1", "db-0"}},
		"a canary node": {map[string]string{inplace.AnnotationCanaryNodes: "zone=a"}, []string{"a", "b", "b"}, nil,
			[]string{"db-0", "db-2", "db-1"}},
		"above the native partition": {byZone, []string{"a", "b", "a"}, []func(*fixture.Members){fixture.Rolling(1, "")},
			[]string{"db-2", "db-1"}},
		"two may be unavailable": {byZone, []string{"b", "a", "c"}, []func(*fixture.Members){fixture.Rolling(0, "2")},
			[]string{"db-1", "db-0", "db-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 3, test.changes...)
			m.StatefulSet.Annotations = test.annotations
			for ordinal, zone := range test.zones {
				m.Node(fmt.Sprint("n", ordinal)).Labels = map[string]string{"zone": zone}
			}
			movesInOrder(m, test.order)
		})
	}
}

// TestReplacedPodGoesFirst: db-0 goes first, and must be replaced. The StatefulSet controller deletes the highest ordinal first, and no
// lower one as long as that is refused. So db-0 has its turn, and a nudge for that, when no higher ordinal is left.
func TestReplacedPodGoesFirst(t *testing.T) {
	canary := map[string]string{inplace.AnnotationCanaryNodes: "canary"}
	oneByOne := []string{"out db-2", "db-2 is db-2 app=v2", "out db-1", "db-1 is db-2 app=v2"}
	for name, test := range map[string]struct {
		order  map[string]string
		change func(*fixture.Members)
		moves  []string
	}{
		"a canary node":      {canary, func(*fixture.Members) {}, oneByOne},
		"the others go last": {map[string]string{inplace.AnnotationUpdateLast: "role=leader"}, func(*fixture.Members) {}, oneByOne},
		"two may be unavailable": {canary, fixture.Rolling(0, "2"), []string{"out db-2",
			"out db-1", "db-2 is db-2 app=v2", "db-1 is db-2 app=v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 3, test.change)
			m.StatefulSet.Annotations = test.order
			m.Node("n0").Labels = map[string]string{"canary": "yes"}
			m.Member(1).Labels["role"], m.Member(2).Labels["role"] = "leader", "leader"
			m.Member(0).Labels[inplace.LabelRevisionHash] = "gone"
			m.Edit(fixture.App{Image: "v2"})
			if held, _ := m.Of().HoldsDeletion(m.Member(0)); !held {
				t.Error("the deletion of db-0 is not held although higher ordinals are left")
			}
			m.Rest()
			m.Expect(slices.Concat([]string{"mark 2 true false"}, test.moves, []string{"db-0 is gone app=v1", "mark 2 false false"})...)
			if held, why := m.Of().HoldsDeletion(m.Member(0)); held {
				t.Errorf("the deletion of db-0 is held: %s", why.Message)
			}
		})
	}
}
