package patches

import (
	"fmt"
	"maps"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pointer returns the JSON pointer of the keys.
func Pointer(keys ...string) string {
	var path strings.Builder
	for _, key := range keys {
		path.WriteString("/" + jsonpointer.Escape(key))
	}
	return path.String()
}

// Guarded returns the patch with a guard: it fails if the object has changed since it was read.
func Guarded(object metav1.Object, operations ...jsonpatch.Operation) []jsonpatch.Operation {
	guard := jsonpatch.NewOperation("replace", "/metadata/resourceVersion", object.GetResourceVersion())
	return append([]jsonpatch.Operation{guard}, operations...)
}

// GuardedButStatus returns the patch with a guard that ignores the status: it fails if the UID, the generation (and so the replicas), the
// labels or the owners have changed since the object was read, or if there are annotations now where the patch adds the first. The API
// server compares these with the stored object when it writes, and again if that changes in between (patchResource in
// apiserver/pkg/endpoints/handlers/patch.go); it answers a difference with 422. Values of annotations are not compared: the API server
// compares bytes, and the values may be escaped differently.
func GuardedButStatus(object metav1.Object, operations ...jsonpatch.Operation) []jsonpatch.Operation {
	guard := []jsonpatch.Operation{
		jsonpatch.NewOperation("test", "/metadata/uid", object.GetUID()),
		jsonpatch.NewOperation("test", "/metadata/generation", object.GetGeneration()),
		jsonpatch.NewOperation("test", "/metadata/labels", orNone(object.GetLabels())),
		jsonpatch.NewOperation("test", "/metadata/ownerReferences", orNone(object.GetOwnerReferences())),
	}
	if len(object.GetAnnotations()) == 0 {
		guard = append(guard, jsonpatch.NewOperation("test", "/metadata/annotations", nil))
	}
	return append(guard, operations...)
}

// orNone returns nil for an empty field, because the API server leaves it out.
func orNone[T map[string]string | []metav1.OwnerReference](field T) any {
	if len(field) == 0 {
		return nil
	}
	return field
}

// EntryChange is a change of a label or an annotation.
type EntryChange struct {
	Key string
	// Value is the new value, unless the entry is removed.
	Value    string
	Removing bool
}

// Changed returns the entries of a map after those changes.
func Changed(have map[string]string, changes []EntryChange) map[string]string {
	next := map[string]string{}
	maps.Copy(next, have)
	for _, change := range changes {
		if next[change.Key] = change.Value; change.Removing {
			delete(next, change.Key)
		}
	}
	return next
}

// SetEntries returns the operations that set entries of the map at /metadata/<field>; an empty value removes an entry.
func SetEntries(field string, have map[string]string, want ...[2]string) []jsonpatch.Operation {
	var entries []EntryChange
	for _, one := range want {
		entries = append(entries, EntryChange{Key: one[0], Value: one[1], Removing: one[1] == ""})
	}
	return EntryOperations(field, have, entries)
}

// EntryOperations returns the operations that make those changes in the map at /metadata/<field>, in their order. Changes that are in the
// map already are left out.
func EntryOperations(field string, have map[string]string, want []EntryChange) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for _, entry := range want {
		current, has := have[entry.Key]
		switch {
		case entry.Removing && has:
			operations = append(operations, jsonpatch.NewOperation("remove", Pointer("metadata", field, entry.Key), nil))
		case !entry.Removing && (!has || current != entry.Value):
			operations = append(operations, jsonpatch.NewOperation("add", Pointer("metadata", field, entry.Key), entry.Value))
		}
	}
	if have == nil && len(operations) > 0 {
		parent := jsonpatch.NewOperation("add", Pointer("metadata", field), map[string]string{})
		return append([]jsonpatch.Operation{parent}, operations...)
	}
	return operations
}

// SetConditions returns the operations that change the conditions of a pod's status, in the same order, with new ones at the end.
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
