package deployments_test

import (
	"slices"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/patches"
)

// TestUndone: kubectl rollout undo replaces all annotations. Settings that it takes away come back, also empty ones, and one that it brings
// goes. Where it leaves all as they were, nothing is to be changed, and the rollout need not be read again.
func TestUndone(t *testing.T) {
	const partition, window = inplace.AnnotationPartition, inplace.AnnotationMaintenanceWindow
	for name, test := range map[string]struct {
		before, revision map[string]string
		want             []patches.EntryChange
	}{
		"one is taken away": {map[string]string{partition: "2", "team": "a"}, nil,
			[]patches.EntryChange{{Key: partition, Value: "2"}}},
		"an empty one is taken away":   {map[string]string{partition: ""}, nil, []patches.EntryChange{{Key: partition}}},
		"one comes with the revision":  {nil, map[string]string{window: "x"}, []patches.EntryChange{{Key: window, Removing: true}}},
		"one is the revision's, too":   {map[string]string{partition: "2"}, map[string]string{partition: "2"}, nil},
		"none was set before or after": {map[string]string{"team": "a"}, nil, nil},
	} {
		r := fixture.New(1, fixture.App{Image: "v1"})
		fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 0).Annotations = test.revision
		r.Deployment.Annotations = deployments.Undone(test.before, test.revision)
		if got := r.Undone(test.before); !slices.Equal(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
