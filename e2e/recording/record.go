package main

import (
	"bufio"
	"fmt"
	"os/exec"
	"time"
)

// line is one line of the terminal: a command, or what came from it.
type line struct {
	at      time.Duration // since the recording began
	text    string
	command bool
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
	command := exec.Command("bash", "-o", "pipefail", "-c", text)
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		return nil, err
	}
	var lines []line
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		lines = append(lines, line{at: time.Since(begun), text: scanner.Text()})
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	return lines, command.Wait()
}
