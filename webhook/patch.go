package webhook

import (
	"strings"

	"gomodules.xyz/jsonpatch/v2"
)

// The escapes of a JSON pointer, RFC 6901.
var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// setAnnotation returns the operations that give one annotation that value, or remove it for the empty value.
func setAnnotation(annotations map[string]string, key, value string) []jsonpatch.Operation {
	path := "/metadata/annotations/" + escape.Replace(key)
	switch is, present := annotations[key]; {
	case value == "" && present:
		return []jsonpatch.Operation{jsonpatch.NewOperation("remove", path, nil)}
	case value == is:
		return nil
	case len(annotations) == 0:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/annotations", map[string]string{key: value})}
	default:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", path, value)}
	}
}

// withoutLabels returns the operations that remove those of the labels that are present.
func withoutLabels(labels map[string]string, keys ...string) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for _, key := range keys {
		if _, present := labels[key]; present {
			operations = append(operations, jsonpatch.NewOperation("remove", "/metadata/labels/"+escape.Replace(key), nil))
		}
	}
	return operations
}
