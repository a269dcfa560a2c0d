package inplace

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUpdateLast(t *testing.T) {
	leader := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"role": "leader", "example.com/zone": "a"}}}
	for selector, has := range map[string]bool{
		"role=leader": true, "role == leader": true, "role": true, "role in (leader, standby)": true, "example.com/zone=a": true,
		" role=leader , example.com/zone!=b ": true, "role notin (standby)": true, "!absent": true, "! absent": true,
		"role=standby": false, "role!=leader": false, "!role": false, "absent": false, "role=leader,absent": false,
	} {
		last := UpdateLastOf(map[string]string{AnnotationUpdateLast: selector})
		if last.None() || last.Has(leader) != has {
			t.Errorf("%q: none %t, it has the pod: %t", selector, last.None(), last.Has(leader))
		}
	}
	for _, selector := range []string{"", " ", ",", "role=", "=leader", "role=leader,", "role in leader", "role in ()", "role=a b", "!role=a",
		"*", "role>1", "Example.com/a=b", "role=" + strings.Repeat("a", 64), strings.Repeat("a,", 125) + "a"} {
		if last := UpdateLastOf(map[string]string{AnnotationUpdateLast: selector}); !last.None() || last.Has(leader) {
			t.Errorf("%q is read", selector)
		}
	}
	if !UpdateLastOf(nil).None() {
		t.Error("without an annotation some pods go last")
	}
}

// TestNodeOrder: nodes are named by whether they are canary nodes, and by their zone; "-" has no zone.
func TestNodeOrder(t *testing.T) {
	const zone = "topology.kubernetes.io/zone"
	nodes := map[string]map[string]string{
		"a": {zone: "a"}, "b": {zone: "b"}, "-": {}, "canary a": {zone: "a", "canary": "yes"}, "canary b": {zone: "b", "canary": ""},
		"canary -": {"canary": "yes"}, "empty": {zone: ""},
	}
	for name, test := range map[string]struct {
		annotations map[string]string
		stages      [][]string
	}{
		"none": {nil, [][]string{{"-", "a", "b", "canary -", "canary a", "canary b", "empty"}}},
		"canaries": {map[string]string{AnnotationCanaryNodes: "canary"},
			[][]string{{"canary -", "canary a", "canary b"}, {"-", "a", "b", "empty"}}},
		"zones": {map[string]string{AnnotationUpdateByTopology: zone},
			[][]string{{"empty"}, {"a", "canary a"}, {"b", "canary b"}, {"-", "canary -"}}},
		"both": {map[string]string{AnnotationCanaryNodes: "canary in (yes)", AnnotationUpdateByTopology: zone},
			[][]string{{"canary a"}, {"canary -"}, {"empty"}, {"a"}, {"b", "canary b"}, {"-"}}},
		"neither is valid": {map[string]string{AnnotationCanaryNodes: "canary=", AnnotationUpdateByTopology: "zone=a"},
			[][]string{{"-", "a", "b", "canary -", "canary a", "canary b", "empty"}}},
	} {
		order := NodeOrderOf(test.annotations)
		if order.None() != (len(test.stages) == 1) {
			t.Errorf("%s: none: %t", name, order.None())
		}
		byName := slices.Sorted(maps.Keys(nodes))
		slices.SortStableFunc(byName, func(a, b string) int { return order.StageOf(nodes[a]).Compare(order.StageOf(nodes[b])) })
		var stages [][]string
		for i, node := range byName {
			if i == 0 || order.StageOf(nodes[byName[i-1]]) != order.StageOf(nodes[node]) {
				stages = append(stages, nil)
			}
			stages[len(stages)-1] = append(stages[len(stages)-1], node)
		}
		if !reflect.DeepEqual(stages, test.stages) {
			t.Errorf("%s: stages are %q, not %q", name, stages, test.stages)
		}
	}
}

func TestNodeStageIsTold(t *testing.T) {
	canaries, zones := map[string]string{AnnotationCanaryNodes: "canary"}, map[string]string{AnnotationUpdateByTopology: "zone"}
	both := map[string]string{AnnotationCanaryNodes: "canary", AnnotationUpdateByTopology: "zone"}
	for _, test := range []struct {
		annotations, node map[string]string
		want              string
	}{
		{nil, map[string]string{"zone": "a"}, ""},
		{canaries, map[string]string{"zone": "a"}, ""},
		{canaries, map[string]string{"canary": ""}, "a canary node"},
		{zones, map[string]string{"zone": "a"}, "zone=a"},
		{zones, nil, "no zone"},
		{both, map[string]string{"zone": "a", "canary": ""}, "a canary node, zone=a"},
	} {
		if told := NodeOrderOf(test.annotations).StageOf(test.node).String(); told != test.want {
			t.Errorf("%v of %v is told as %q, not %q", test.node, test.annotations, told, test.want)
		}
	}
}
