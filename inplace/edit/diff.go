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
	text     string
	elements []tree          // of a list
	fields   map[string]tree // of an object
}

func treeOf(value any) tree {
	switch value := value.(type) {
	case map[string]any:
		return treeOfObject(value)
	case []any:
		return treeOfList(value)
	case nil:
		return tree{} // as a field that is absent
	default:
		return tree{value: value, text: fmt.Sprintf("%T %v", value, value)}
	}
}

func treeOfObject(object map[string]any) tree {
	fields, sum := make(map[string]tree, len(object)), sha256.New()
	for _, key := range slices.Sorted(maps.Keys(object)) {
		fields[key] = treeOf(object[key])
		fmt.Fprintf(sum, "%q: %q, ", key, fields[key].text)
	}
	return tree{value: object, fields: fields, text: "object " + string(sum.Sum(nil))}
}

func treeOfList(list []any) tree {
	elements, sum := make([]tree, len(list)), sha256.New()
	for i := range list {
		elements[i] = treeOf(list[i])
		fmt.Fprintf(sum, "%q, ", elements[i].text)
	}
	return tree{value: list, elements: elements, text: "list " + string(sum.Sum(nil))}
}

// visit yields the differences of the trees at the path. It returns false when the caller has stopped.
func visit(path []string, from, to tree, yield func(difference) bool) bool {
	if from.text == to.text {
		return true
	}
	lists := from.elements != nil && to.elements != nil && len(from.elements) == len(to.elements)
	reordered := lists && slices.Equal(sortedTexts(from.elements), sortedTexts(to.elements))
	switch {
	case from.fields != nil && to.fields != nil:
		return visitObjects(path, from, to, yield)
	case lists && !reordered:
		return visitLists(path, from, to, yield)
	}
	return yield(difference{path: slices.Clone(path), from: from.value, to: to.value, reordered: reordered})
}

func visitObjects(path []string, from, to tree, yield func(difference) bool) bool {
	for _, key := range both(slices.Collect(maps.Keys(from.fields)), slices.Collect(maps.Keys(to.fields))) {
		if !visit(append(path, key), from.fields[key], to.fields[key], yield) {
			return false
		}
	}
	return true
}

func visitLists(path []string, from, to tree, yield func(difference) bool) bool {
	for i := range from.elements {
		if !visit(append(path, strconv.Itoa(i)), from.elements[i], to.elements[i], yield) {
			return false
		}
	}
	return true
}

// sortedTexts returns the texts of the trees, whatever their order.
func sortedTexts(trees []tree) []string {
	all := make([]string, len(trees))
	for i := range trees {
		all[i] = trees[i].text
	}
	slices.Sort(all)
	return all
}
