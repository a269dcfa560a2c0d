package main

import (
	"fmt"
	"html"
	"strings"
	"time"
	"unicode/utf8"
)

// In pixels. Each text says how wide it is, so columns are straight in every font.
const (
	character = 8.4
	height    = 19
	margin    = 18
	bar       = 34 // the title above the terminal
)

// style is that of the picture. Without animation, everything is visible: that is the last state.
const style = `
.back{fill:#f6f8fa;stroke:#d0d7de}.bar{stroke:#d0d7de}text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
.title,.prompt{fill:#57606a}.title{font-size:12px}.printed,.command{fill:#1f2328}.command{font-weight:600}.warning{fill:#8a5a00}
.changed{fill:#1a7f37;font-weight:600}
@media (prefers-color-scheme:dark){.back{fill:#161b22;stroke:#30363d}.bar{stroke:#30363d}
.title,.prompt{fill:#9198a1}.printed,.command{fill:#e6edf3}.warning{fill:#e3b341}.changed{fill:#3fb950}}
`

// render draws the frames as an animated terminal.
func render(title string, frames []frame) string {
	columns, rows := size(frames)
	width, tall := int(float64(columns)*character)+2*margin, bar+rows*height+margin
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img">`+"\n", width, tall)
	fmt.Fprint(&svg, "<!-- Made by \"make recording\" from a real run. Change its commands in e2e/recording. -->\n")
	fmt.Fprintf(&svg, "<title>%s</title>\n<desc>%s</desc>\n", html.EscapeString(title), html.EscapeString(transcript(frames)))
	fmt.Fprintf(&svg, "<style>%s%s</style>\n", style, animation(frames))
	fmt.Fprintf(&svg, `<rect class="back" x=".5" y=".5" width="%d" height="%d" rx="8"/>`, width-1, tall-1)
	fmt.Fprintf(&svg, `<path class="bar" d="M0 %dH%d"/>`, bar-8, width)
	fmt.Fprintf(&svg, `<text class="title" x="%d" y="18">%s</text>`+"\n", margin, html.EscapeString(title))
	moments := moments(frames)
	for _, f := range frames {
		length := float64(utf8.RuneCountInString(f.text)) * character
		classes := f.class
		if f.until > 0 {
			classes += " gone"
		}
		fmt.Fprintf(&svg, `<text class="%s f f%d" x="%.1f" y="%d" textLength="%.1f">%s</text>`+"\n", classes, moments[f.moment()],
			margin+float64(f.column)*character, bar+(f.row+1)*height, length, spaced(f.text))
	}
	return svg.String() + "</svg>\n"
}

// spaced returns the text with spaces that no browser collapses.
func spaced(text string) string { return strings.ReplaceAll(html.EscapeString(text), " ", "&#160;") }

// size returns how many columns and rows the frames need.
func size(frames []frame) (columns, rows int) {
	for _, f := range frames {
		columns = max(columns, f.column+utf8.RuneCountInString(f.text))
		rows = max(rows, f.row+1)
	}
	return columns, rows
}

// moment is when something appears and, if it does not stay, when it is gone.
type moment struct{ at, until time.Duration }

func (f frame) moment() moment { return moment{f.at, f.until} }

// moments numbers the moments: what appears at the same one shares an animation.
func moments(frames []frame) map[moment]int {
	numbers := map[moment]int{}
	for _, f := range frames {
		if _, known := numbers[f.moment()]; !known {
			numbers[f.moment()] = len(numbers)
		}
	}
	return numbers
}

// animation returns the style by which the text of each moment appears, again and again, after the last state. It is only for readers who
// allow motion.
func animation(frames []frame) string {
	if len(frames) == 0 {
		return ""
	}
	lasts := opening + frames[len(frames)-1].at + resting
	share := func(at time.Duration) float64 { return 100 * (opening + at).Seconds() / lasts.Seconds() }
	var css strings.Builder
	fmt.Fprintf(&css, "@media (prefers-reduced-motion:no-preference){.f{animation:%.1fs step-end infinite}\n", lasts.Seconds())
	begun := map[moment]bool{}
	numbers := moments(frames)
	for _, f := range frames {
		if begun[f.moment()] {
			continue
		}
		begun[f.moment()] = true
		first, end := 1, ""
		if f.until > 0 {
			first, end = 0, fmt.Sprintf("%.2f%%{opacity:0}", share(f.until))
		}
		fmt.Fprintf(&css, ".f%[1]d{animation-name:f%[1]d}@keyframes f%[1]d{0%%{opacity:%[2]d}%.2[3]f%%{opacity:0}%.2[4]f%%{opacity:1}%[5]s}\n",
			numbers[f.moment()], first, share(0), share(f.at), end)
	}
	return css.String() + "}\n.gone{opacity:0}\n"
}

// transcript is the whole text of the last state, for readers who do not see the picture.
func transcript(frames []frame) string {
	var text strings.Builder
	row, column := 0, 0
	for _, f := range frames {
		if f.until > 0 {
			continue
		}
		if f.row > row {
			text.WriteString("\n")
			row, column = f.row, 0
		}
		text.WriteString(strings.Repeat(" ", f.column-column) + f.text)
		column = f.column + utf8.RuneCountInString(f.text)
	}
	return text.String()
}
