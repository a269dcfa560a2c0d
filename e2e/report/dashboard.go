package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	canvas "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	cellWidth  vg.Length = 34 // of Grafana's grid, whose 24 columns fill the page
	cellHeight vg.Length = 20
	named                = 5  // lines that the legend of a panel names: those with the highest values
	samples              = 60 // values of a line
)

// palette is for the lines of a panel. Its colours differ for people who cannot tell red from green, too.
var palette = [named]color.Color{
	color.RGBA{G: 114, B: 178, A: 255}, color.RGBA{R: 213, G: 94, A: 255}, color.RGBA{G: 158, B: 115, A: 255},
	color.RGBA{R: 230, G: 159, A: 255}, color.RGBA{R: 204, G: 121, B: 167, A: 255},
}

// grey is for lines without a name of their own.
var grey = color.Gray{Y: 190}

// panel is a panel of a Grafana dashboard, with what Prometheus answered.
type panel struct {
	Title, Type string
	GridPos     struct{ X, Y, W, H float64 }
	Targets     []struct{ Expr, LegendFormat string }
	FieldConfig struct{ Defaults struct{ Unit string } }
	lines       []line
}

// drawDashboard draws the dashboard of a file with the values that a Prometheus has of the last minutes.
func drawDashboard(arguments []string) error {
	if len(arguments) != 4 {
		return errors.New("wants a dashboard, a Prometheus and the picture: report dashboard JSON URL MINUTES SVG")
	}
	minutes, err := strconv.Atoi(arguments[2])
	if err != nil {
		return err
	}
	content, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(content, &dashboard); err != nil {
		return err
	}
	from := source{arguments[1], time.Now().Add(-time.Duration(minutes) * time.Minute), minutes}
	for i := range dashboard.Panels {
		if err := from.fill(&dashboard.Panels[i]); err != nil {
			return fmt.Errorf("%s: %w", dashboard.Panels[i].Title, err)
		}
	}
	var picture bytes.Buffer
	if _, err := grid(dashboard.Panels, float64(minutes)).WriteTo(&picture); err != nil {
		return err
	}
	return os.WriteFile(arguments[3], picture.Bytes(), 0o644)
}

// source is a Prometheus, and the time of which it is asked.
type source struct {
	address string
	begin   time.Time
	minutes int
}

// series is one series of an answer.
type series struct {
	Metric map[string]string
	Values [][2]any // a time in seconds and a value as text
}

// fill asks for each expression of the panel, for all clusters and namespaces.
func (s source) fill(p *panel) error {
	filled := strings.NewReplacer("$__rate_interval", "1m", "$__range", fmt.Sprintf("%dm", s.minutes), "$cluster", ".*", "$namespace", ".*")
	for _, target := range p.Targets {
		answer, err := s.ask(filled.Replace(target.Expr))
		if err != nil {
			return err
		}
		for _, one := range answer {
			p.lines = append(p.lines, line{name: one.name(target.LegendFormat), points: s.points(one)})
		}
	}
	return nil
}

func (s source) ask(expression string) ([]series, error) {
	response, err := http.PostForm(s.address+"/api/v1/query_range", url.Values{
		"query": {expression}, "step": {fmt.Sprint(float64(s.minutes) * 60 / samples)},
		"start": {fmt.Sprint(s.begin.Unix())}, "end": {fmt.Sprint(s.begin.Unix() + 60*int64(s.minutes))},
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Error string
		Data  struct{ Result []series }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Data.Result, nil
}

var label = regexp.MustCompile(`{{(\w+)}}`)

// name fills labels into the format of the legend.
func (s series) name(format string) string {
	name := label.ReplaceAllStringFunc(format, func(found string) string { return s.Metric[strings.Trim(found, "{}")] })
	return cmp.Or(strings.TrimSpace(name), "(none)")
}

// points are the values by minutes. What is no number is left out, as in Grafana.
func (s source) points(from series) plotter.XYs {
	var points plotter.XYs
	for _, pair := range from.Values {
		at, _ := pair[0].(float64)
		text, _ := pair[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err == nil && known(value) {
			points = append(points, plotter.XY{X: (at - float64(s.begin.Unix())) / 60, Y: value})
		}
	}
	return points
}

// grid draws each panel in its place.
func grid(panels []panel, minutes float64) *vgsvg.Canvas {
	plot.DefaultFont = sans
	var rows float64
	for _, p := range panels {
		rows = max(rows, p.GridPos.Y+p.GridPos.H)
	}
	page := vgsvg.New(24*cellWidth, vg.Length(rows)*cellHeight)
	whole := canvas.New(page)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())
	for _, p := range panels {
		at := p.GridPos
		left, top := vg.Length(at.X)*cellWidth, whole.Max.Y-vg.Length(at.Y)*cellHeight
		right, bottom := left+vg.Length(at.W)*cellWidth, top-vg.Length(at.H)*cellHeight
		place := canvas.Canvas{Canvas: page, Rectangle: vg.Rectangle{Min: vg.Point{X: left, Y: bottom}, Max: vg.Point{X: right, Y: top}}}
		place = canvas.Crop(place, 6, -6, 6, -6)
		if p.Type == "stat" {
			p.numbers(place)
		} else {
			p.chart(place, minutes)
		}
	}
	return page
}

// text is black text of a size.
func text(size vg.Length) canvas.TextStyle {
	f := sans
	f.Size = size
	return canvas.TextStyle{Color: color.Black, Font: f, Handler: plot.DefaultTextHandler}
}

// numbers shows the last value of each line.
func (p panel) numbers(on canvas.Canvas) {
	at := vg.Point{X: on.Min.X, Y: on.Max.Y - 10}
	on.FillText(text(9), at, p.Title)
	for _, l := range p.lines {
		if len(l.points) == 0 {
			continue
		}
		at.Y -= 18
		number := strconv.FormatFloat(l.points[len(l.points)-1].Y, 'f', 0, 64)
		on.FillText(text(15), at, number)
		on.FillText(text(7), vg.Point{X: at.X + text(15).Width(number) + 6, Y: at.Y}, l.name)
	}
}

// chart shows the lines above their legend.
func (p panel) chart(on canvas.Canvas, minutes float64) {
	lines := p.coloured()
	shown, legend := plot.New(), plot.NewLegend()
	shown.Title.Text, shown.Title.TextStyle.Font.Size = p.Title, 8.5
	legend.Top, legend.Left, legend.ThumbnailWidth, legend.TextStyle.Font.Size, legend.Padding = true, true, 12, 7, 1.5
	shown.Add(plotter.NewGrid())
	for i, l := range lines {
		style := canvas.LineStyle{Color: l.colour, Width: 1}
		for _, part := range unbroken(l.points, 1.5*minutes/samples) {
			shown.Add(&plotter.Line{XYs: part, LineStyle: style})
		}
		if i >= len(lines)-named {
			legend.Add(l.name, &plotter.Line{LineStyle: style})
		}
	}
	if more := len(lines) - named; more > 0 {
		legend.Add(fmt.Sprintf("%d more", more), &plotter.Line{LineStyle: canvas.LineStyle{Color: grey, Width: 1}})
	}
	p.axes(shown, minutes)
	below := vg.Length(min(len(lines), named+1)) * 9
	shown.Draw(canvas.Crop(on, 0, 0, below+4, 0))
	legend.Draw(canvas.Crop(on, 30, 0, 0, below-on.Size().Y))
	if len(lines) == 0 {
		on.FillText(text(9), vg.Point{X: on.Center().X - text(9).Width("No data")/2, Y: on.Center().Y}, "No data")
	}
}

// coloured are the lines that have values, those with the highest ones last and above the others, which are grey.
func (p panel) coloured() []line {
	lines := slices.DeleteFunc(slices.Clone(p.lines), func(l line) bool { return len(l.points) == 0 })
	if len(lines) > named {
		slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.peak(), b.peak()) })
	}
	unnamed := max(0, len(lines)-named)
	for i := range lines {
		lines[i].colour = grey
		if i >= unnamed {
			lines[i].colour = palette[i-unnamed]
		}
	}
	return lines
}

func (l line) peak() float64 {
	_, _, _, most := plotter.XYRange(l.points)
	return most
}

// unbroken cuts where values are missing.
func unbroken(points plotter.XYs, longest float64) []plotter.XYs {
	var parts []plotter.XYs
	for i, p := range points {
		if i == 0 || p.X-points[i-1].X > longest {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], p)
	}
	return parts
}

// axes labels the minutes and the values with their units.
func (p panel) axes(shown *plot.Plot, minutes float64) {
	shown.X.Min, shown.X.Max, shown.Y.Min, shown.Y.Max = 0, minutes, 0, shown.Y.Max*1.05
	if shown.Y.Max <= 0 { // no values, or all 0
		shown.Y.Max = 1
	}
	unit, scale := map[string]string{"s": " s", "ops": "/s", "reqps": "/s", "bytes": " MiB"}[p.FieldConfig.Defaults.Unit], 1.0
	if unit == " MiB" {
		scale = 1 << 20
	}
	shown.X.Tick.Marker, shown.Y.Tick.Marker = ticks(" min", 1), ticks(unit, scale)
	shown.X.Tick.Label.Font.Size, shown.Y.Tick.Label.Font.Size = 7, 7
}

// ticks are even ones with a unit.
func ticks(unit string, scale float64) plot.TickerFunc {
	return func(least, most float64) []plot.Tick {
		all := even(least/scale, most/scale)
		for i := range all {
			all[i].Value *= scale
			all[i].Label += unit
		}
		return all
	}
}
