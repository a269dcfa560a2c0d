package main

import (
	"encoding/xml"
	"errors"
	"html"
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
		{0, 0, 0, "$", "prompt", 0},
		{typing, 0, 2, "kubectl", "command", 0},
		{2 * typing, 0, 10, "get", "command", 0},
		{3 * typing, 0, 14, "pods", "command", 0},
		{3*typing + seconds(0.2), 1, 0, "Warning: a < b", "warning", 0},
		{3*typing + seconds(0.2) + longest, 3, 0, "web    1/1", "printed", 0},
		{3*typing + seconds(0.2) + longest + reading, 4, 0, "$", "prompt", 0},
		{4*typing + seconds(0.2) + longest + reading, 4, 2, "true", "command", 0},
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
		".f4{animation-name:f4}@keyframes f4{0%{opacity:1}16.53%{opacity:0}21.90%{opacity:1}}",
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

// TestChanges shows that cells that differ from the run before stand out.
func TestChanges(t *testing.T) {
	frames := play([]line{
		{text: "get", command: true}, {text: "web-1   v1   0"},
		{text: "get", command: true}, {text: "web-1   v2   0"},
	})
	var got []string
	for _, f := range frames[3:] {
		got = append(got, f.class+" "+f.text)
	}
	if want := "prompt $|command get|printed web-1|changed v2|printed 0"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %s", got, want)
	}
}

// TestOver shows that a line is gone when another takes its place, also from the transcript.
func TestOver(t *testing.T) {
	var s screen
	s.write(seconds(1), "begun\r\n\r[=  ] 1\x1b[K")
	s.write(seconds(2), "\r[== ] 2\x1b[K")
	s.write(seconds(3), "\r\x1b[Kdone\n\nall\n")
	frames := play(append([]line{{text: "go", command: true}}, s.lines...))
	svg := render("", frames)
	if !strings.Contains(svg, "<desc>$ go\nbegun\ndone\nall</desc>") || strings.Count(svg, `class="printed gone f`) != 2 {
		t.Error(svg)
	}
	if last := frames[len(frames)-1]; last.row != 4 {
		t.Errorf("the last row is %d", last.row)
	}
}

// TestRows checks that the first recording fits beside the text of README: 14 rows, with what each command prints.
func TestRows(t *testing.T) {
	pods := []line{{text: "NAME   UID"}, {text: "a   1"}, {text: "b   2"}, {text: "c   3"}}
	printed := [][]line{pods, {{text: "Warning: in place"}, {text: "updated"}}, nil, pods}
	var lines []line
	for i, command := range recordings[0].shown {
		lines = append(append(lines, line{text: command, command: true}), printed[i]...)
	}
	if _, rows := size(play(lines)); rows != 14 {
		t.Errorf("it has %d rows", rows)
	}
}

// TestCommitted checks the recordings that the documents show.
func TestCommitted(t *testing.T) {
	for _, r := range recordings {
		svg, err := os.ReadFile("../../docs/" + r.file)
		if err != nil {
			t.Fatal(err)
		}
		if len(svg) > 60<<10 {
			t.Errorf("%s has %d bytes", r.file, len(svg))
		}
		wellFormed(t, string(svg))
		for _, command := range r.shown {
			if !strings.Contains(string(svg), "$ "+html.EscapeString(command)+"\n") {
				t.Errorf("%s does not show %s: run make recording", r.file, command)
			}
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
