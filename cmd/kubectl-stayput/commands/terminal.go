package commands

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/moby/term"
)

// escaper writes control characters in a visible form, as kubectl does: otherwise a user who may write an Event or an annotation could
// write to the terminal of the user who reads it. The form is that of JSON, so that outputs for programs stay as they are.
var escaper = func() *strings.Replacer {
	var pairs []string
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

// teller prints lines, and none twice in a row.
type teller struct {
	out  io.Writer
	last string
}

func (t *teller) say(format string, arguments ...any) {
	if line := fmt.Sprintf(format, arguments...); line != t.last {
		t.last = line
		fmt.Fprintln(t.out, line)
	}
}

// progressLine is a line at the end of a terminal that is written again and again.
type progressLine struct {
	terminal io.Writer
	columns  int
}

// progress returns the line for a terminal. It returns false if the output is something else.
func progress(out io.Writer) (progressLine, bool) {
	if safe, is := out.(escaped); is {
		out = safe.to
	}
	descriptor, is := term.GetFdInfo(out)
	line := progressLine{out, 80}
	if size, err := term.GetWinsize(descriptor); is && err == nil && size.Width > 0 {
		line.columns = int(size.Width)
	}
	return line, is
}

// barColumns are the columns of a bar between its brackets.
const barColumns = 20

// show shows a bar and the text. It cuts the line where the terminal ends.
func (p progressLine) show(done, all int, text string) {
	full := barColumns * min(done, all) / max(all, 1)
	bar := fmt.Sprintf("[%s%s] %s", strings.Repeat("=", full), strings.Repeat(" ", barColumns-full), text)
	line := []rune(escaper.Replace(bar))
	fmt.Fprintf(p.terminal, "\r%s\x1b[K", string(line[:min(len(line), p.columns-1)]))
}

// clear removes the line.
func (p progressLine) clear() { fmt.Fprint(p.terminal, "\r\x1b[K") }
