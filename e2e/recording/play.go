package main

import (
	"strings"
	"time"
)

const (
	longest = 1500 * time.Millisecond // a longer wait for output is shortened to this
	reading = 1800 * time.Millisecond // between the output of a command and the next command, in the run as well
	typing  = 150 * time.Millisecond  // for each word of a command
	resting = 8 * time.Second         // for the last state, before the playback begins again
)

// frame is text that appears at one moment of the playback, and stays.
type frame struct {
	at          time.Duration
	row, column int
	text, class string
}

// play turns what was recorded into frames: commands appear word by word, and no wait is longer than longest.
func play(lines []line) []frame {
	var frames []frame
	var clock time.Duration
	for row, l := range lines {
		if l.command {
			if row > 0 {
				clock += reading
			}
			typed := typed(row, l.text, clock)
			frames = append(frames, typed...)
			clock = typed[len(typed)-1].at
			continue
		}
		clock += min(l.at-lines[row-1].at, longest)
		if l.text != "" {
			frames = append(frames, frame{at: clock, row: row, text: l.text, class: class(l.text)})
		}
	}
	return frames
}

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
