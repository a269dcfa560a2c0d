package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const source = `package sample

const (
	// LabelA is what
	// one sets; see LabelB.
	//
	// Not for the reference.
	LabelA = "a.example/a"
	LabelB = LabelA // says a|b
	labelC = "not chosen"
	EventD = "Done" // tells the end
)

func tell() { reporter.event(object, corev1.EventTypeWarning, EventD, "note") }
`

func TestConstantsAreDescribed(t *testing.T) {
	var got []constant
	if err := constants(folder(t, source), in("", "Label"), &got); err != nil {
		t.Fatal(err)
	}
	want := []constant{
		{Name: "LabelA", Value: "a.example/a", Doc: "What one sets; see `a.example/a`", file: "sample.go"},
		{Name: "LabelB", Value: "a.example/a", Doc: `Says a\|b`, file: "sample.go"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestConstantsNeedComments(t *testing.T) {
	var got []constant
	err := constants(folder(t, source), in("", "labelC"), &got)
	if err == nil || !strings.Contains(err.Error(), "labelC") {
		t.Errorf("got %v, want an error that names labelC", err)
	}
	if err := constants(folder(t, source), in("", "Annotation"), &got); err == nil {
		t.Error("no constant was found, but there is no error")
	}
}

func TestEventsHaveTheirTypes(t *testing.T) {
	var got []event
	if err := events(folder(t, source), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Value != "Done" || got[0].Type != "Warning" {
		t.Errorf("got %+v, want Done as a Warning", got)
	}
	unused := strings.Replace(source, "EventD,", "EventE,", 1)
	if err := events(folder(t, unused), &got); err == nil || !strings.Contains(err.Error(), "EventD") {
		t.Errorf("got %v, want an error that names EventD", err)
	}
}

func TestMetricOf(t *testing.T) {
	got, err := metricOf(`Desc{fqName: "x_total", help: "Says \"x\".", constLabels: {}, variableLabels: {a,b}}`)
	if want := (metric{Name: "x_total", Help: `Says "x"`, Labels: []string{"a", "b"}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := metricOf("x_total"); err == nil {
		t.Error("a text that is no description was accepted")
	}
}

// folder returns a folder with one file, which has the source.
func folder(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sample.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
