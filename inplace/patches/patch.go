package patches

import (
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// EntryChange is a label or an annotation that changes.
type EntryChange struct {
	Key string
	// Value it gets, unless it goes.
	Value string
	Goes  bool
}

// EntryOperations make the map at /metadata/<field> have those entries, in their order. What is so already is left out.
func EntryOperations(field string, have map[string]string, want []EntryChange) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for _, entry := range want {
		current, has := have[entry.Key]
		switch {
		case entry.Goes && has:
			operations = append(operations, jsonpatch.NewOperation("remove", Pointer("metadata", field, entry.Key), nil))
		case !entry.Goes && (!has || current != entry.Value):
			operations = append(operations, jsonpatch.NewOperation("add", Pointer("metadata", field, entry.Key), entry.Value))
		}
	}
	if have == nil && len(operations) > 0 {
		parent := jsonpatch.NewOperation("add", Pointer("metadata", field), map[string]string{})
		return append([]jsonpatch.Operation{parent}, operations...)
	}
	return operations
}

// SetConditions returns the operations that make the conditions of a pod's status others, in the same order, with new ones at the end.
func SetConditions(have, want []corev1.PodCondition) []jsonpatch.Operation {
	if len(have) == 0 && len(want) > 0 {
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/status/conditions", want)}
	}
	var operations []jsonpatch.Operation
	for i, condition := range want {
		switch {
		case i >= len(have):
			operations = append(operations, jsonpatch.NewOperation("add", "/status/conditions/-", condition))
		case !equality.Semantic.DeepEqual(have[i], condition):
			operations = append(operations, jsonpatch.NewOperation("replace", fmt.Sprintf("/status/conditions/%d", i), condition))
		}
	}
	return operations
}
