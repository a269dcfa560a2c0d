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
	return func(yield func(difference) bool) { (&walk{yield: yield}).visit(from, to) }
}

// walk visits two trees at once.
type walk struct {
	path  []string
	yield func(difference) bool
}

// visit returns false when the caller has stopped.
func (w *walk) visit(from, to any) bool {
	switch from := from.(type) {
	case map[string]any:
		if to, same := to.(map[string]any); same {
			return w.visitObjects(from, to)
		}
	case []any:
		if to, same := to.([]any); same && len(from) == len(to) {
			return w.visitLists(from, to)
		}
	default:
		if reflect.DeepEqual(from, to) {
			return true
		}
	}
	return w.yield(difference{path: slices.Clone(w.path), from: from, to: to})
}

func (w *walk) visitObjects(from, to map[string]any) bool {
	for _, key := range sortedKeys(from, to) {
		if !w.enter(key, from[key], to[key]) {
			return false
		}
	}
	return true
}

func (w *walk) visitLists(from, to []any) bool {
	switch {
	case reflect.DeepEqual(from, to):
		return true
	case reordered(from, to):
		return w.yield(difference{path: slices.Clone(w.path), from: from, to: to, reordered: true})
	}
	for i := range from {
		if !w.enter(strconv.Itoa(i), from[i], to[i]) {
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

// texts returns one text for each element. Equal elements have equal texts.
func texts(list []any) []string {
	var all []string
	for _, element := range list {
		raw, err := json.Marshal(element)
		if err != nil {
			panic(err) // it was JSON
		}
		all = append(all, string(raw))
	}
	return all
}

func (w *walk) enter(key string, from, to any) bool {
	w.path = append(w.path, key)
	goOn := w.visit(from, to)
	w.path = w.path[:len(w.path)-1]
	return goOn
}

// sortedKeys returns the keys of both maps, each once.
func sortedKeys[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}
