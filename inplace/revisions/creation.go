package revisions

import (
	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
)

// WithoutMarks returns the operations that remove Stayput's marks from a ReplicaSet that is being created: labels of a template may contain
// them.
func WithoutMarks(rs *apps.ReplicaSet) []jsonpatch.Operation {
	var none [][2]string
	for _, mark := range inplace.Marks {
		none = append(none, [2]string{mark, ""})
	}
	return patches.SetEntries("labels", rs.Labels, none...)
}

// WithoutReplicas returns the operations that make the API server create a ReplicaSet without replicas, so that live pods can move to it;
// none if it has no replicas already.
func WithoutReplicas(rs *apps.ReplicaSet) []jsonpatch.Operation {
	if rs.Spec.Replicas != nil && *rs.Spec.Replicas == 0 {
		return nil
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/replicas", 0)}
}
