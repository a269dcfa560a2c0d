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

// Pointer joins the keys to a JSON pointer.
func Pointer(keys ...string) string {
	var path strings.Builder
	for _, key := range keys {
		path.WriteString("/" + jsonpointer.Escape(key))
	}
	return path.String()
}

// Guarded begins a patch of the object as it was read.
func Guarded(object metav1.Object, operations ...jsonpatch.Operation) []jsonpatch.Operation {
	guard := jsonpatch.NewOperation("replace", "/metadata/resourceVersion", object.GetResourceVersion())
	return append([]jsonpatch.Operation{guard}, operations...)
}

// GuardedButStatus begins a patch of the object as it was read, whatever has become of its status: replicas, labels and owner are the same, and there are
// still no annotations where the patch makes the first. The API server compares with what is stored when it writes, and again if that changes
// meanwhile (patchResource in apiserver/pkg/endpoints/handlers/patch.go); what is another it answers 422. Texts of annotations are not compared:
// it compares bytes, and they may be escaped otherwise.
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

// orNone is nil for what the API server leaves out when it is empty.
func orNone[T map[string]string | []metav1.OwnerReference](field T) any {
	if len(field) == 0 {
		return nil
	}
	return field
}

// EntryChange is a label or an annotation that changes.
type EntryChange struct {
	Key string
	// Value it gets, unless it goes.
	Value    string
	Removing bool
}

// Changed are the entries of a map after those changes.
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

// SetEntries sets entries of the map at /metadata/<field>; an empty value removes one.
func SetEntries(field string, have map[string]string, want ...[2]string) []jsonpatch.Operation {
	var entries []EntryChange
	for _, one := range want {
		entries = append(entries, EntryChange{Key: one[0], Value: one[1], Removing: one[1] == ""})
	}
	return EntryOperations(field, have, entries)
}

// EntryOperations make the map at /metadata/<field> have those entries, in their order. What is so already is left out.
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
