package statefulsets_test

import (
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestEditOfAGroup: a LeaderWorkerSet edits the template and sets a partition for all pods at once, and lowers it later.
func TestEditOfAGroup(t *testing.T) {
	for _, partition := range []int32{0, 2} {
		m := fixture.NewMembers(t, 2, fixture.Rolling(partition, ""))
		before := m.StatefulSet.Spec.Template
		m.Edit(fixture.App{Image: "v2", Group: "llm"})
		preview := m.Of().Preview(before)
		if codes := preview.Reasons.Codes(); preview.InPlace() || len(codes) != 1 || codes[0] != inplace.CodeGroups {
			t.Errorf("with partition %d it says %q", partition, preview.String())
		}
	}
}
