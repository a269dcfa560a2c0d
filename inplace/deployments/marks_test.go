package deployments_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestBegin: ReplicaSet a is old, b is a newer one, and c is the new one. Those that pods had are what an undo goes back to: for an edit to
// another one the partition counts.
func TestBegin(t *testing.T) {
	const now = "1000000"
	marked := func(updating, current string) map[string]string {
		return map[string]string{inplace.LabelUpdating: updating, inplace.LabelCurrent: current}
	}
	for name, test := range map[string]struct {
		labels [3]map[string]string
		inUse  string
		want   string
	}{
		"the first time": {[3]map[string]string{}, "ab", "a " + now + " " + now + ", b " + now + " " + now + ", c " + now + " , "},
		"a mark is left over": {[3]map[string]string{marked("", "5")}, "ab",
			"a " + now + " " + now + ", b " + now + " " + now + ", c " + now + " , "},
		"no pod has b":   {[3]map[string]string{}, "a", "a " + now + " " + now + ", b  , c " + now + " , "},
		"a further edit": {[3]map[string]string{marked("7", "7"), marked("7", "")}, "ab", "a 7 7, b 7 , c 7 , "},
		"after the scaling": {[3]map[string]string{marked("7.scaling", "7"), marked("7.scaling", ""), marked("7.scaling", "")},
			"ab", "a 7 7, b 7 , c 7 , "},
		"one joins late":                    {[3]map[string]string{marked("7", "7"), nil, marked("7", "")}, "ab", "a 7 7, b 7 7, c 7 , "},
		"which were current is unknown":     {[3]map[string]string{marked("7", ""), nil, marked("7", "")}, "ab", "a 7 7, b 7 7, c 7 , "},
		"unknown, and pods have moved to c": {[3]map[string]string{marked("7", ""), nil, marked("7", "")}, "abc", "a 7 7, b 7 7, c 7 , "},
	} {
		var sizes []counts
		for _, hash := range "abc" {
			size := strings.Count(test.inUse, string(hash))
			sizes = append(sizes, counts{size, size, 0})
		}
		sets := setsOf(3, 0, sizes...)
		for i, labels := range test.labels {
			sets.All[i].Rs.Labels = labels
		}
		marks, got := sets.Marking(), ""
		marks.Begin(sets, fixture.Start)
		for _, s := range sets.All {
			got += fmt.Sprintf("%s %s %s, ", s.Rs.Name, marks[s].Updating, marks[s].Current)
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
