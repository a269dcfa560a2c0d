// Package pages reads commands and their output out of pages and examples, so that a test can run what readers will run.
//
// There is one convention, for Markdown and for the comments of the files in examples:
//
//   - In a block of the language console, a line that begins with "$ " is a command. A command that ends with a backslash goes on in the
//     next line. All other lines are the output of the command above them, standard error included.
//   - In a block of the language sh every line is a command, apart from empty lines and comments. Its output is not shown.
//   - In a manifest, the lines of the comment at the top that begin with "#   " are one console block.
//
// How shown and actual output are compared is said at Differs.
package pages

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// Command is a command that a page shows.
type Command struct {
	// Line is where the command begins, counted from 1.
	Line int
	Text string
	// Output has the lines that the page shows below the command. It is nil if the page shows no output.
	Output []string
}

const (
	prompt  = "$ "
	fence   = "```"
	comment = "#"
	// quoted begins the lines of a manifest's comment that are a console block.
	quoted = "#   "
)

// usual are programs whose names begin a command, also without a prompt.
var usual = []string{"kubectl", "helm", "make"}

// OfPage returns the commands of a Markdown page, in their order. A command in a block of another language than console and sh is an error,
// since it would not be run.
func OfPage(markdown string) ([]Command, error) {
	var found []Command
	language, inside := "", false
	for i, line := range lines(markdown) {
		trimmed := strings.TrimSpace(line)
		switch after, isFence := strings.CutPrefix(trimmed, fence); {
		case isFence:
			language, inside = after, !inside
		case !inside:
		case language == "console":
			found = console(found, i+1, trimmed)
		case language == "sh":
			found = script(found, i+1, trimmed)
		case strings.HasPrefix(trimmed, prompt), begins(trimmed, usual):
			return nil, fmt.Errorf("line %d: a command in a block of language %q, which is neither console nor sh", i+1, language)
		}
	}
	if inside {
		return nil, fmt.Errorf("a block of language %q has no end", language)
	}
	return found, runnable(found)
}

// OfManifest returns the commands in the comment at the top of a manifest.
func OfManifest(manifest string) ([]Command, error) {
	var found []Command
	for i, line := range lines(manifest) {
		if !strings.HasPrefix(line, comment) {
			break
		}
		if text, is := strings.CutPrefix(line, quoted); is {
			found = console(found, i+1, text)
		}
	}
	return found, runnable(found)
}

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// console adds one line of a console block.
func console(found []Command, number int, line string) []Command {
	if text, is := strings.CutPrefix(line, prompt); is {
		return append(found, Command{Line: number, Text: text})
	}
	if len(found) == 0 || line == "" {
		return found
	}
	last := &found[len(found)-1]
	if before, goesOn := strings.CutSuffix(last.Text, `\`); goesOn && last.Output == nil {
		last.Text = strings.TrimSpace(before) + " " + strings.TrimSpace(line)
		return found
	}
	last.Output = append(last.Output, line)
	return found
}

// script adds one line of a block of the language sh.
func script(found []Command, number int, line string) []Command {
	if len(found) > 0 {
		last := &found[len(found)-1]
		if before, goesOn := strings.CutSuffix(last.Text, `\`); goesOn {
			last.Text = strings.TrimSpace(before) + " " + line
			return found
		}
	}
	if line == "" || strings.HasPrefix(line, comment) {
		return found
	}
	return append(found, Command{Line: number, Text: line})
}

// runnable returns an error if a command has no end, or takes its input from the lines below it.
func runnable(found []Command) error {
	for _, command := range found {
		if strings.HasSuffix(command.Text, `\`) || strings.Contains(command.Text, "<<") {
			return fmt.Errorf("line %d: %q is not a whole command", command.Line, command.Text)
		}
	}
	return nil
}

// span is code between words. It may go on in the next line.
var span = regexp.MustCompile("`([^`]+)`")

// Spans returns the commands that stand between words or in a table, between single backquotes: those that begin with one of these
// programs and have arguments. Blocks are not searched.
func Spans(markdown string, programs ...string) []Command {
	var found []Command
	for first, paragraph := range paragraphs(markdown) {
		for _, at := range span.FindAllStringSubmatchIndex(paragraph, -1) {
			text := strings.TrimPrefix(strings.Join(strings.Fields(paragraph[at[2]:at[3]]), " "), prompt)
			if begins(text, programs) {
				found = append(found, Command{Line: first + strings.Count(paragraph[:at[0]], "\n"), Text: text})
			}
		}
	}
	return found
}

// paragraphs yields the number of each paragraph's first line, and the paragraph. Blocks are left out.
func paragraphs(markdown string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		first, inside := 0, false
		var text []string
		for i, line := range append(lines(markdown), "") {
			trimmed := strings.TrimSpace(line)
			isFence := strings.HasPrefix(trimmed, fence)
			if isFence {
				inside = !inside
			}
			if !inside && !isFence && trimmed != "" {
				if len(text) == 0 {
					first = i + 1
				}
				text = append(text, line)
				continue
			}
			if len(text) > 0 && !yield(first, strings.Join(text, "\n")) {
				return
			}
			text = nil
		}
	}
}

func begins(text string, programs []string) bool {
	return slices.ContainsFunc(programs, func(program string) bool { return strings.HasPrefix(text, program+" ") })
}
