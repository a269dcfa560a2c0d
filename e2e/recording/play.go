package main

import (
	"regexp"
	"strings"
	"time"
)

const (
	longest = 1500 * time.Millisecond // a longer wait for output is shortened to this
	reading = 1800 * time.Millisecond // between the output of a command and the next command, in the run as well
	typing  = 150 * time.Millisecond  // for each word of a command
	opening = 2 * time.Second         // for the last state, which the playback shows first: pictures that do not move show their beginning
	resting = 6 * time.Second         // for the last state, before the playback begins again
)

// frame is text that appears at one moment of the playback, and stays, or is gone at another moment.
type frame struct {
	at          time.Duration
	row, column int
	text, class string
	until       time.Duration
}

// play turns what was recorded into frames: commands appear word by word, and no wait is longer than longest.
func play(lines []line) []frame {
	var frames []frame
	var clock time.Duration
	row, out := -1, outputs{of: map[string]*output{}}
	for i, l := range lines {
		if !l.over {
			row++
		}
		if l.command {
			if i > 0 {
				clock += reading
			}
			frames = append(frames, typed(row, l.text, clock)...)
			clock = frames[len(frames)-1].at
			out.begin(l.text)
			continue
		}
		clock += min(l.at-lines[i-1].at, longest)
		if l.over {
			vanish(frames, row, clock)
		}
		frames = append(frames, out.printed(l.text, row, clock)...)
	}
	return frames
}

// vanish ends the frames of a row.
func vanish(frames []frame, row int, at time.Duration) {
	for i := range frames {
		if frames[i].row == row && frames[i].until == 0 {
			frames[i].until = at
		}
	}
}

// outputs are what each command has printed, so that what differs the next time stands out.
type outputs struct {
	of     map[string]*output
	latest *output
}

// output are the lines of a command's runs: those of the run before, and those of this one.
type output struct{ before, now []string }

func (o *outputs) begin(command string) {
	if o.of[command] == nil {
		o.of[command] = &output{}
	}
	o.latest = o.of[command]
	o.latest.before, o.latest.now = o.latest.now, nil
}

// printed returns the frames of a line: one, or one for each cell if the run before printed a line with as many cells there.
func (o *outputs) printed(text string, row int, at time.Duration) []frame {
	out := o.latest
	k := len(out.now)
	out.now = append(out.now, text)
	if text == "" {
		return nil
	}
	if k >= len(out.before) {
		return []frame{{at: at, row: row, text: text, class: class(text)}}
	}
	now, before := cells(text), cells(out.before[k])
	var frames []frame
	for i, cell := range now {
		f := frame{at: at, row: row, column: cell[0], text: text[cell[0]:cell[1]], class: "printed"}
		if i < len(before) && f.text != out.before[k][before[i][0]:before[i][1]] {
			f.class = "changed"
		}
		frames = append(frames, f)
	}
	return frames
}

// cell is what stands between two or more spaces.
var cell = regexp.MustCompile(`\S+( \S+)*`)

// cells returns where the cells of a line begin and end.
func cells(text string) [][]int { return cell.FindAllStringIndex(text, -1) }

// typed returns the prompt and the words of a command, one after another.
func typed(row int, command string, clock time.Duration) []frame {
	frames := []frame{{at: clock, row: row, text: "$", class: "prompt"}}
	column := len("$ ")
	for word := range strings.FieldsSeq(command) {
		clock += typing
		frames = append(frames, frame{at: clock, row: row, column: column, text: word, class: "command"})
		column += len(word) + 1
	}
	return frames
}

// class is that of printed text: kubectl's warnings stand out, as on a terminal.
func class(text string) string {
	if strings.HasPrefix(text, "Warning:") {
		return "warning"
	}
	return "printed"
}
