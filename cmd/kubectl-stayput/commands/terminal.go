package commands

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/moby/term"
)

// colour is a colour of a terminal, as the code that begins it. All have the same length, so that columns of coloured cells are as wide as
// those of others.
type colour string

const (
	plain  colour = "\x1b[39m"
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
)

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
	fmt.Fprintf(p.out, "\r%s\x1b[K", string(line[:min(len(line), p.columns-1)]))
}

// clear removes the line.
func (p progressLine) clear() {
	if p.columns > 0 {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
