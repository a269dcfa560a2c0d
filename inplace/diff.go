package inplace

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// difference is a place at which two trees differ; from or to is nil where it is absent on that side.
type difference struct {
	path     []string
	from, to any
}

// pointer is the JSON pointer to the place (RFC 6901).
func (d difference) pointer() string { return pointer(d.path...) }

// verb says what happened there.
func (d difference) verb() string {
	switch {
	case d.from == nil:
		return "added"
	case d.to == nil:
		return "removed"
	default:
		return "changed"
	}
}

// differences lists the deepest places at which the trees differ, in order. Lists of different length differ as a whole: which
// of their elements correspond is anybody's guess.
func differences(from, to any, path ...string) []difference {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	fromObject, fromIs := from.(map[string]any)
	toObject, toIs := to.(map[string]any)
	if fromIs && toIs {
		return objectDifferences(fromObject, toObject, path)
	}
	fromList, fromIs := from.([]any)
	toList, toIs := to.([]any)
	if fromIs && toIs && len(fromList) == len(toList) {
		return listDifferences(fromList, toList, path)
	}
	return []difference{{path: path, from: from, to: to}}
}

func objectDifferences(from, to map[string]any, path []string) []difference {
	var all []difference
	for _, key := range sortedKeys(from, to) {
		all = append(all, differences(from[key], to[key], append(slices.Clone(path), key)...)...)
	}
	return all
}

func listDifferences(from, to []any, path []string) []difference {
	var all []difference
	for i := range from {
		all = append(all, differences(from[i], to[i], append(slices.Clone(path), strconv.Itoa(i))...)...)
	}
	return all
}

// sortedKeys returns the keys of both maps, each once.
func sortedKeys[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// changedKeys returns the keys that only one of the maps has or that have different values, sorted.
func changedKeys(from, to map[string]string) []string {
	var changed []string
	for _, key := range sortedKeys(from, to) {
		old, had := from[key]
		value, has := to[key]
		if had != has || old != value {
			changed = append(changed, key)
		}
	}
	return changed
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// pointer joins the keys to a JSON pointer.
func pointer(keys ...string) string {
	var path strings.Builder
	for _, key := range keys {
		path.WriteString("/" + pointerEscaper.Replace(key))
	}
	return path.String()
}
