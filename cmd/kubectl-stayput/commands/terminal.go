package commands

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/moby/term"
)

// colour is what begins a colour of a terminal: see controls. All have the same length, so that columns of coloured cells are as wide as
// those of others.
type colour string

const (
	plain  colour = "\xf8"
	red    colour = "\xf9"
	green  colour = "\xfa"
	yellow colour = "\xfb"

	lineStart = "\xfc"
	eraseRest = "\xfd"
)

// controls are what the plugin itself tells a terminal. They are written as bytes that UTF-8 never has, so no text of the cluster can have
// them.
var controls = []string{
	string(plain), "\x1b[39m", string(red), "\x1b[31m", string(green), "\x1b[32m", string(yellow), "\x1b[33m",
	lineStart, "\r", eraseRest, "\x1b[K",
}

// escaper writes all other control characters in a visible form, as kubectl does: otherwise a user who may write an Event or an annotation
// could write to the terminal of the user who reads it. The form is that of JSON, so that outputs for programs stay as they are.
var escaper = func() *strings.Replacer {
	pairs := controls
	for r := rune(0); r <= unicode.MaxLatin1; r++ {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			pairs = append(pairs, string(r), fmt.Sprintf(`\u%04x`, r))
		}
	}
	return strings.NewReplacer(pairs...)
}()

// escaped is a writer whose text the escaper has gone over.
type escaped struct{ to io.Writer }

// Write implements io.Writer.
func (e escaped) Write(text []byte) (int, error) {
	if _, err := escaper.WriteString(e.to, string(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// oneLine keeps a text of the cluster within its line, so that it is not taken for further lines of the plugin.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// painter paints words if they are for a terminal. In a table, it has to paint every cell of a column.
type painter bool

// painterFor returns a painter that paints on terminals, unless the user wants no colours (https://no-color.org).
func painterFor(out io.Writer) painter {
	_, is := terminal(out)
	return painter(is && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

func (p painter) paint(text string, in colour) string {
	if !p {
		return text
	}
	return string(in) + text + string(plain)
}

// terminal returns how many columns the output has, and whether it is a terminal at all.
func terminal(out io.Writer) (columns int, is bool) {
	if safe, is := out.(escaped); is {
		out = safe.to
	}
	descriptor, is := term.GetFdInfo(out)
	if !is {
		return 0, false
	}
	size, err := term.GetWinsize(descriptor)
	if err != nil || size.Width == 0 {
		return usualColumns, true
	}
	return int(size.Width), true
}

const usualColumns = 80

// progressLine is a line at the end of a terminal that is written again and again. If columns is 0, nothing is written.
type progressLine struct {
	out     io.Writer
	columns int
}

// progress returns the line for a terminal. If the output is something else, nothing is written.
func progress(out io.Writer) progressLine {
	columns, _ := terminal(out)
	return progressLine{out, columns}
}

// barColumns are the columns of a bar between its brackets.
const barColumns = 20

// show shows a bar and the text. It cuts the line where the terminal ends.
func (p progressLine) show(done, all int, text string) {
	if p.columns == 0 {
		return
	}
	full := barColumns * min(done, all) / max(all, 1)
	line := []rune(fmt.Sprintf("[%s%s] %s", strings.Repeat("=", full), strings.Repeat(" ", barColumns-full), text))
	fmt.Fprintf(p.out, lineStart+"%s"+eraseRest, string(line[:min(len(line), p.columns-1)]))
}

// clear removes the line.
func (p progressLine) clear() {
	if p.columns > 0 {
		fmt.Fprint(p.out, lineStart+eraseRest)
	}
}
