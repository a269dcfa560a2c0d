package patches

import (
	"strings"

	"github.com/go-openapi/jsonpointer"
	"gomodules.xyz/jsonpatch/v2"
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

// SetEntries sets entries of the map at /metadata/<field>; an empty value removes one.
func SetEntries(field string, have map[string]string, want ...[2]string) []jsonpatch.Operation {
	var entries []EntryChange
	for _, one := range want {
		entries = append(entries, EntryChange{Key: one[0], Value: one[1], Goes: one[1] == ""})
	}
	return EntryOperations(field, have, entries)
}
