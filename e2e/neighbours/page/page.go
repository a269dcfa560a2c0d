// Package page reads scripts, tables and objects for the tests: what a page of docs/how-to shows is what they run.
package page

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Read returns the text of a page of docs/how-to. Tests run in a folder below e2e/neighbours.
func Read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/how-to/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var blocks = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// YAML returns the first block of YAML in the page that contains the text.
func YAML(t *testing.T, name, containing string) string {
	t.Helper()
	for _, block := range blocks.FindAllStringSubmatch(Read(t, name), -1) {
		if strings.Contains(block[1], containing) {
			return block[1]
		}
	}
	t.Fatalf("%s has no block of YAML with %q", name, containing)
	return ""
}

// Cell returns what the table with that column says of the row whose first cell is the key.
func Cell(t *testing.T, name, column, key string) string {
	t.Helper()
	at := -1
	for _, line := range strings.Split(Read(t, name), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
			if cells[i] == column {
				at = i
			}
		}
		if line == "" {
			at = -1
		}
		if at >= 0 && at < len(cells) && cells[0] == key {
			return cells[at]
		}
	}
	t.Fatalf("%s has no table with the column %q and the row %q", name, column, key)
	return ""
}

// Object returns an object of inputs/.
func Object(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("../inputs/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	// As clients do, numbers without a fraction become int64.
	var object unstructured.Unstructured
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return &object
}

// Deployments are the objects of inputs/, by what the page calls their states.
var Deployments = map[string]string{
	"created":                          "created",
	"pods are being updated":           "updating",
	"held at its partition":            "at-partition",
	"finished":                         "finished",
	"an image cannot be pulled":        "deadline",
	"paused (`kubectl rollout pause`)": "paused",
}
