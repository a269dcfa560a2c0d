package edit

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
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
	return func(yield func(difference) bool) { visit(nil, treeOf(from), treeOf(to), yield) }
}

// tree is a JSON value whose parts are compared by their texts. The texts are made from the leaves up, each once: a value may be nested
// thousands of times.
type tree struct {
	value any
	// text is the same for equal values. That of a list or an object is a digest.
	text string
	// kind is "list", "object", or empty for other values. The parts of a list or an object are its elements or fields, by their keys in
	// order. The key of an element is its index.
	kind  string
	keys  []string
	parts map[string]tree
}

func treeOf(value any) tree {
	switch value := value.(type) {
	case map[string]any:
		return treeOfParts("object", value, slices.Sorted(maps.Keys(value)), value)
	case []any:
		keys, elements := make([]string, len(value)), make(map[string]any, len(value))
		for i := range value {
			keys[i] = strconv.Itoa(i)
			elements[keys[i]] = value[i]
		}
		return treeOfParts("list", value, keys, elements)
	case nil:
		return tree{} // as a field that is absent
	default:
		return tree{value: value, text: fmt.Sprintf("%T %v", value, value)}
	}
}

func treeOfParts(kind string, value any, keys []string, parts map[string]any) tree {
	of, sum := tree{value: value, kind: kind, keys: keys, parts: make(map[string]tree, len(parts))}, sha256.New()
	for _, key := range keys {
		of.parts[key] = treeOf(parts[key])
		fmt.Fprintf(sum, "%q: %q, ", key, of.parts[key].text)
	}
	of.text = kind + " " + string(sum.Sum(nil))
	return of
}

// visit yields the differences of the trees at the path. It returns false when the caller has stopped.
func visit(path []string, from, to tree, yield func(difference) bool) bool {
	if from.text == to.text {
		return true
	}
	lists := from.kind == "list" && to.kind == "list" && len(from.keys) == len(to.keys)
	reordered := lists && slices.Equal(sortedTexts(from), sortedTexts(to))
	keys := from.keys
	switch {
	case from.kind == "object" && to.kind == "object":
		keys = both(from.keys, to.keys)
	case !lists || reordered:
		return yield(difference{path: slices.Clone(path), from: from.value, to: to.value, reordered: reordered})
	}
	for _, key := range keys {
		if !visit(append(path, key), from.parts[key], to.parts[key], yield) {
			return false
		}
	}
	return true
}

// sortedTexts returns the texts of the elements, whatever their order.
func sortedTexts(list tree) []string {
	var all []string
	for _, element := range list.parts {
		all = append(all, element.text)
	}
	slices.Sort(all)
	return all
}
