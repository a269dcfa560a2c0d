package values

import (
	"reflect"
	"strings"
	"testing"
)

const chart = `# About the file.

# How many,
# at least 1.
count: 2
group:
  # A | B.
  name: ""
# One with parts.
parts:
  one: 1
  # Two.
  two: 2
# All of these.
labels:
  team: "a"
  own:
    also: "b"
# A list.
list: []
# Another.
more: [a, "b"]
# Objects.
objects:
  - name: a
`

func TestValuesHaveTheirComments(t *testing.T) {
	got, err := In([]byte(chart))
	want := []Value{
		{"count", "integer", "`2`", "How many, at least 1"}, {"group.name", "string", "`\"\"`", `A \| B`}, {"parts", "map", "", "One with parts"},
		{"parts.one", "integer", "`1`", "See `parts`"}, {"parts.two", "integer", "`2`", "Two"},
		{"labels", "map", "`{team: \"a\", own: {also: \"b\"}}`", "All of these"},
		{"list", "list", "`[]`", "A list"}, {"more", "list", "`[a, \"b\"]`", "Another"}, {"objects", "list", "`[...]`", "Objects"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestEachValueHasAComment(t *testing.T) {
	for _, test := range []struct{ values, names string }{
		{strings.Replace(chart, "# A list.", "", 1), "value list has no comment"},
		{"- a", "no mapping"},
	} {
		if _, err := In([]byte(test.values)); err == nil || !strings.Contains(err.Error(), test.names) {
			t.Errorf("got %v, want an error that says %q", err, test.names)
		}
	}
}
