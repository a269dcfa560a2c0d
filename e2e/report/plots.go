package main

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/vgsvg" // registers SVG
)

const (
	width  = 16 * vg.Centimeter
	height = 9 * vg.Centimeter
)

var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// colours are the same in every plot. People who cannot tell red from green can tell them apart, too.
var colours = map[string]color.Color{
	native:  color.RGBA{R: 213, G: 94, A: 255},
	inPlace: color.RGBA{G: 114, B: 178, A: 255},
	floor:   color.RGBA{R: 120, G: 120, B: 120, A: 255},
	vpa:     color.RGBA{R: 230, G: 159, A: 255},
}

// drawing is a plot that was made.
type drawing struct{ File, Title string }

// line is one of the lines of a plot.
type line struct {
	name   string
	colour color.Color
	dashed bool
	points plotter.XYs
}

// draw makes every plot for which there are figures.
func draw(f figures, folder string) ([]drawing, error) {
	plot.DefaultFont = sans
	var all []drawing
	for _, sheet := range append(progress(f), growth(f)...) {
		if len(sheet.lines) == 0 {
			continue
		}
		if err := sheet.save(folder); err != nil {
			return nil, fmt.Errorf("%s: %w", sheet.File, err)
		}
		all = append(all, sheet.drawing)
	}
	return all, nil
}

// sheet describes a plot.
type sheet struct {
	drawing
	x, y        string
	logarithmic bool
	lines       []line
}

// progress shows how the number of updated pods grows in the update of median duration.
func progress(f figures) []sheet {
	var sheets []sheet
	for _, one := range []struct{ bench, file string }{
		{daemonSet, "updated-daemonset.svg"},
		{four, "updated-4.svg"},
		{twenty, "updated-20.svg"},
		{twentyServed, "updated-20-service.svg"},
		{resized, "resized-12.svg"},
	} {
		s := sheet{drawing: drawing{one.file, one.bench}, x: "seconds", y: "pods updated and Ready"}
		for _, name := range []string{native, inPlace, floor, vpa} {
			if times := f.way(one.bench, name).Updated; len(times) > 0 {
				s.lines = append(s.lines, line{name: name, colour: colours[name], points: stairs(times)})
			}
		}
		sheets = append(sheets, s)
	}
	return sheets
}

// stairs rises by one at each time.
func stairs(times []float64) plotter.XYs {
	points := plotter.XYs{{}}
	for i, at := range times {
		points = append(points, plotter.XY{X: at, Y: float64(i)}, plotter.XY{X: at, Y: float64(i + 1)})
	}
	return points
}

// growth shows the figures by the size of workloads.
func growth(f figures) []sheet {
	cpu := sheet{drawing: drawing{"cpu.svg", "Managers' processor time per pod"}, x: "pods", y: "milliseconds per pod", logarithmic: true}
	cpu.add(f, "Deployment", simulatedDeployment, inPlace, milliseconds, false)
	cpu.add(f, "DaemonSet", simulatedDaemonSet, inPlace, milliseconds, true)
	took := sheet{drawing: drawing{"seconds.svg", "Seconds until rolled out, 10 % at a time"}, x: "pods", y: "seconds", logarithmic: true}
	for _, name := range []string{native, inPlace} {
		took.add(f, "Deployment, "+name, simulatedDeployment, name, seconds, false)
		took.add(f, "DaemonSet, "+name, simulatedDaemonSet, name, seconds, true)
	}
	return []sheet{cpu, took}
}

// add draws a line through the sizes that were measured.
func (s *sheet) add(f figures, name string, of func(int) string, way, what string, dashed bool) {
	var points plotter.XYs
	for _, pods := range []int{100, 200, 300, 1000, 3000} {
		if value := f.value(of(pods), way, what); known(value) {
			points = append(points, plotter.XY{X: float64(pods), Y: value})
		}
	}
	if len(points) > 0 {
		s.lines = append(s.lines, line{name: name, colour: colours[way], dashed: dashed, points: points})
	}
}

func (s sheet) save(folder string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = s.Title, s.x, s.y
	// Below right: lines that grow with time do not reach it.
	p.Legend.XOffs, p.Legend.YOffs, p.Legend.Padding = -vg.Points(8), vg.Points(8), vg.Points(2)
	p.Add(plotter.NewGrid())
	for _, l := range s.lines {
		drawn, marks, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return err
		}
		drawn.Color, drawn.Width, marks.Color = l.colour, vg.Points(1.5), l.colour
		if l.dashed {
			drawn.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		p.Add(drawn)
		if s.logarithmic {
			p.Add(marks)
		}
		p.Legend.Add(l.name, drawn)
	}
	p.Y.Min = 0
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(even), plot.TickerFunc(even)
	if s.logarithmic {
		s.bySize(p)
	}
	return p.Save(width, height, filepath.Join(folder, s.File))
}

// even labels every tick: up to eight of them, at multiples of 1, 2 or 5.
func even(least, most float64) []plot.Tick {
	decade, step := math.Pow10(int(math.Floor(math.Log10(most-least)))), 0.0
	for _, times := range []float64{0.1, 0.2, 0.5, 1, 2} {
		if step = decade * times; (most-least)/step <= 8 {
			break
		}
	}
	var ticks []plot.Tick
	for i := math.Ceil(least / step); i*step <= most; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'g', 4, 64)})
	}
	return ticks
}

// bySize spaces the sizes evenly and labels them, and leaves room above for the legend.
func (s sheet) bySize(p *plot.Plot) {
	p.Y.Max *= 1.35
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs, p.Legend.YOffs = true, true, vg.Points(8), 0
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = plot.TickerFunc(func(least, most float64) []plot.Tick {
		var ticks []plot.Tick
		for _, pods := range []float64{100, 200, 300, 1000, 3000} {
			if pods >= least && pods <= most {
				ticks = append(ticks, plot.Tick{Value: pods, Label: fmt.Sprintf("%.0f", pods)})
			}
		}
		return ticks
	})
	if p.X.Min == p.X.Max { // a single size: a logarithmic axis needs an extent
		p.X.Min, p.X.Max = p.X.Min/2, p.X.Max*2
	}
}
