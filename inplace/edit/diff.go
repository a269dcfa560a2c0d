package edit

import (
	"encoding/json"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/stayput/stayput/inplace/patches"
)

// difference is a place at which two trees differ. On a side where the place is absent, from or to is nil.
type difference struct {
	path     []string
	from, to any
	// reordered says that both are lists of the same elements.
	reordered bool
}

// pointer returns the JSON pointer to the place (RFC 6901).
func (d difference) pointer() string { return patches.Pointer(d.path...) }

// verb returns what happened at the place.
func (d difference) verb() string {
	switch {
	case d.from == nil:
		return "added"
	case d.to == nil:
		return "removed"
	case d.reordered:
		return "reordered"
	default:
		return "changed"
	}
}

// differences yields the deepest places at which the trees differ, in order. Lists of different length differ as a whole, because
// it is unknown which of their elements correspond. Lists of the same elements in another order differ as a whole, too. Each place
// is visited once, and the walk stops as soon as the caller stops.
func differences(from, to any) iter.Seq[difference] {
	return func(yield func(difference) bool) { visit(nil, from, to, yield) }
}

// visit yields the differences of the trees at the path. It returns false when the caller has stopped.
func visit(path []string, from, to any, yield func(difference) bool) bool {
	switch from := from.(type) {
	case map[string]any:
		if to, same := to.(map[string]any); same {
			return visitObjects(path, from, to, yield)
		}
	case []any:
		if to, same := to.([]any); same && len(from) == len(to) {
			return visitLists(path, from, to, yield)
		}
	default:
		if reflect.DeepEqual(from, to) {
			return true
		}
	}
	return yield(difference{path: slices.Clone(path), from: from, to: to})
}

func visitObjects(path []string, from, to map[string]any, yield func(difference) bool) bool {
	for _, key := range both(slices.Collect(maps.Keys(from)), slices.Collect(maps.Keys(to))) {
		if !visit(append(path, key), from[key], to[key], yield) {
			return false
		}
	}
	return true
}

func visitLists(path []string, from, to []any, yield func(difference) bool) bool {
	switch {
	case reflect.DeepEqual(from, to):
		return true
	case reordered(from, to):
		return yield(difference{path: slices.Clone(path), from: from, to: to, reordered: true})
	}
	for i := range from {
		if !visit(append(path, strconv.Itoa(i)), from[i], to[i], yield) {
			return false
		}
	}
	return true
}

// reordered reports whether two different lists have the same elements in another order.
func reordered(from, to []any) bool {
	before, after := texts(from), texts(to)
	slices.Sort(before)
	slices.Sort(after)
	return slices.Equal(before, after)
}

// texts returns one text for each element. Equal elements have equal texts. There may be thousands.
func texts[T any](list []T) []string {
	var all []string
	for i := range list {
		raw, err := json.Marshal(list[i])
		if err != nil {
			panic(err) // it was decoded from JSON
		}
		all = append(all, string(raw))
	}
	return all
}
