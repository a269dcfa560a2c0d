package deployments_test

import (
	"fmt"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestBegin: ReplicaSet a is old, b is a newer one in use, and c is the new one.
func TestBegin(t *testing.T) {
	const now = "1000000"
	marked := func(updating, current string) map[string]string {
		return map[string]string{inplace.LabelUpdating: updating, inplace.LabelCurrent: current}
	}
	for name, test := range map[string]struct {
		labels [3]map[string]string
		want   string
	}{
		"the first time": {[3]map[string]string{}, "a " + now + " " + now + ", b " + now + " " + now + ", c " + now + " , "},
		"a mark is left over": {[3]map[string]string{marked("", "5")},
			"a " + now + " " + now + ", b " + now + " " + now + ", c " + now + " , "},
		"a further edit": {[3]map[string]string{marked("7", "7"), marked("7", "")}, "a 7 7, b 7 , c 7 , "},
		"after the scaling": {[3]map[string]string{marked("7.scaling", "7"), marked("7.scaling", ""), marked("7.scaling", "")},
			"a 7 7, b 7 , c 7 , "},
		"one joins late":                {[3]map[string]string{marked("7", "7"), nil, marked("7", "")}, "a 7 7, b 7 7, c 7 , "},
		"which were current is unknown": {[3]map[string]string{marked("7", ""), nil, marked("7", "")}, "a 7 7, b 7 7, c 7 , "},
	} {
		sets := setsOf(3, 0, counts{1, 1, 0}, counts{1, 1, 0}, counts{})
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
