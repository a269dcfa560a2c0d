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
		{"count", "`2`", "How many, at least 1"}, {"group.name", "`\"\"`", `A \| B`}, {"labels", "", "All of these"},
		{"labels.team", "`\"a\"`", "See `labels`"}, {"labels.own.also", "`\"b\"`", "See `labels`"}, {"list", "`[]`", "A list"},
		{"more", "`[a, \"b\"]`", "Another"}, {"objects", "`[...]`", "Objects"},
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
