package main

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
  port: 80
  # A | B.
  name: ""
# All of these.
labels:
  team: "a"
list: []
`

var ofOthers = map[string]string{"group.port": "the port", "labels.team": "the team", "list": "the list"}

func TestValuesHaveTheirComments(t *testing.T) {
	got, err := valuesIn([]byte(chart), ofOthers)
	want := []value{
		{"count", "`2`", "How many, at least 1"}, {"group.port", "`80`", "the port"}, {"group.name", "`\"\"`", `A \| B`},
		{"labels", "", "All of these"}, {"labels.team", "`\"a\"`", "the team"}, {"list", "`[]`", "the list"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestEachValueIsDescribedOnce(t *testing.T) {
	for _, test := range []struct{ values, names string }{
		{strings.Replace(chart, "list: []", "list: []\nmore: 1", 1), "value more has no comment"},
		{strings.Replace(chart, "list: []", "# A list.\nlist: []", 1), "value list has a comment"},
		{strings.Replace(chart, "list: []", "", 1), "only 2 of them exist"},
		{"- a", "no mapping"},
	} {
		if _, err := valuesIn([]byte(test.values), ofOthers); err == nil || !strings.Contains(err.Error(), test.names) {
			t.Errorf("got %v, want an error that says %q", err, test.names)
		}
	}
}
