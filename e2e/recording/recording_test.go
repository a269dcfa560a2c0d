package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// A command, its warning at once, an empty line, and a line that came after a minute.
var recorded = []line{
	{at: 0, text: "kubectl get pods", command: true},
	{at: seconds(0.2), text: "Warning: a < b"},
	{at: seconds(0.2), text: ""},
	{at: seconds(60), text: "web    1/1"},
	{at: seconds(61), text: "true", command: true},
}

func TestPlay(t *testing.T) {
	want := []frame{
		{0, 0, 0, "$", "prompt"},
		{typing, 0, 2, "kubectl", "command"},
		{2 * typing, 0, 10, "get", "command"},
		{3 * typing, 0, 14, "pods", "command"},
		{3*typing + seconds(0.2), 1, 0, "Warning: a < b", "warning"},
		{3*typing + seconds(0.2) + longest, 3, 0, "web    1/1", "printed"},
		{3*typing + seconds(0.2) + longest + reading, 4, 0, "$", "prompt"},
		{4*typing + seconds(0.2) + longest + reading, 4, 2, "true", "command"},
	}
	got := play(recorded)
	if len(got) != len(want) {
		t.Fatalf("%d frames, want %d: %v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("frame %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func TestRender(t *testing.T) {
	svg := render("v1 & more", play(recorded))
	wellFormed(t, svg)
	for _, part := range []string{
		"<title>v1 &amp; more</title>",
		"<desc>$ kubectl get pods\nWarning: a &lt; b\nweb    1/1\n$ true</desc>",
		`<text class="warning f f4" x="18.0" y="72" textLength="117.6">Warning:&#160;a&#160;&lt;&#160;b</text>`,
		`<text class="command f f1" x="34.8" y="53" textLength="58.8">kubectl</text>`,
		".f4{animation-name:f4}@keyframes f4{0%{opacity:0}5.37%{opacity:1}}",
		"prefers-color-scheme:dark",
	} {
		if !strings.Contains(svg, part) {
			t.Errorf("%s is not in\n%s", part, svg)
		}
	}
	if hidden := strings.Index(svg, "opacity:0"); hidden < strings.Index(svg, "prefers-reduced-motion:no-preference") {
		t.Error("text is hidden also from readers who want no motion")
	}
}

// TestSharedMoment shows that lines of one moment appear in one animation.
func TestSharedMoment(t *testing.T) {
	svg := render("", []frame{{at: 0, text: "a"}, {at: 0, row: 1, text: "b"}})
	if strings.Count(svg, "@keyframes") != 1 || strings.Count(svg, "f f0") != 2 {
		t.Error(svg)
	}
}

func TestRecord(t *testing.T) {
	lines, err := record([]string{"echo out; sleep 0.2; echo err >&2", "true | tail -1"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, l := range lines {
		text = append(text, l.text)
	}
	if got := strings.Join(text, "|"); got != "echo out; sleep 0.2; echo err >&2|out|err|true | tail -1" {
		t.Error(got)
	}
	if waited := lines[2].at - lines[1].at; waited < seconds(0.1) {
		t.Errorf("the second line came %s after the first", waited)
	}
	if _, err := record([]string{"false | true"}, 0); err == nil {
		t.Error("a command that failed was recorded")
	}
}

// TestCommitted checks the recording that README shows.
func TestCommitted(t *testing.T) {
	svg, err := os.ReadFile("../../docs/recording.svg")
	if err != nil {
		t.Fatal(err)
	}
	if len(svg) > 60<<10 {
		t.Errorf("it has %d bytes", len(svg))
	}
	wellFormed(t, string(svg))
	for _, command := range shown {
		if !strings.Contains(string(svg), "$ "+command+"\n") {
			t.Errorf("it does not show %s: run make recording", command)
		}
	}
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}
