package main

import (
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// line is one line of the terminal: a command, or what came from it.
type line struct {
	at      time.Duration // since the recording began
	text    string
	command bool
	over    bool // it takes the place of the line before, as a bar does
}

// record runs the commands one after another, with a pause between them, and returns what a terminal would show. It fails with the first
// command that fails.
func record(commands []string, pause time.Duration) ([]line, error) {
	var lines []line
	begun := time.Now()
	for i, command := range commands {
		if i > 0 {
			time.Sleep(pause)
		}
		lines = append(lines, line{at: time.Since(begun), text: command, command: true})
		printed, err := printedBy(command, begun)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", command, err)
		}
		lines = append(lines, printed...)
	}
	return lines, nil
}

// printedBy runs a command and returns what it writes to its output and its error output, in the order in which it comes.
func printedBy(text string, begun time.Time) ([]line, error) {
	command := shell(text)
	input, err := command.StdinPipe() // it stays open: at its end, script would write ^D
	if err != nil {
		return nil, err
	}
	defer func() { _ = input.Close() }()
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		return nil, err
	}
	var shown screen
	buffer := make([]byte, 1<<16)
	for {
		n, err := output.Read(buffer)
		shown.write(time.Since(begun), string(buffer[:n]))
		if err == io.EOF {
			return shown.lines, command.Wait()
		}
		if err != nil {
			return nil, err
		}
	}
}

// shell returns the process of a command. One that watches gets a terminal of its own, on which it shows a bar.
func shell(text string) *exec.Cmd {
	if strings.Contains(text, "--watch") {
		command := exec.Command("script", "-qefc", "set -e -o pipefail; "+text, "/dev/null")
		command.Env = append(command.Environ(), "SHELL=/bin/bash")
		return command
	}
	return exec.Command("bash", "-e", "-o", "pipefail", "-c", text)
}

// screen is what a command has printed so far.
type screen struct {
	lines []line
	open  bool // the last line has no end yet
	over  bool // and what comes next takes its place
}

var controls = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// write adds what came at a time.
func (s *screen) write(at time.Duration, text string) {
	text = strings.ReplaceAll(controls.ReplaceAllString(text, ""), "\r\n", "\n")
	for text != "" {
		end := strings.IndexAny(text, "\r\n")
		if end < 0 {
			s.add(at, text)
			return
		}
		s.add(at, text[:end])
		s.end(at, text[end] == '\r')
		text = text[end+1:]
	}
}

// add adds a part of a line.
func (s *screen) add(at time.Duration, part string) {
	switch {
	case part == "":
	case s.open && !s.over:
		s.lines[len(s.lines)-1].text += part
	default:
		s.lines = append(s.lines, line{at: at, text: part, over: s.over})
		s.open, s.over = true, false
	}
}

// end ends a line, or returns to its beginning.
func (s *screen) end(at time.Duration, returns bool) {
	switch {
	case returns:
		s.over = s.open
	case !s.open:
		s.lines = append(s.lines, line{at: at})
	default:
		s.open, s.over = false, false
	}
}
