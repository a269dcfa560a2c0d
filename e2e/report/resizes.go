package main

import "fmt"

// resizeRow is the cost of one way to give pods other CPU and memory.
type resizeRow struct{ Bench, Way, Seconds, Writes, Unready, AllUnready, Fewer, Created string }

// resizes returns the rows of all ways that were measured, those of one run beside one another.
func resizes(f figures) []resizeRow {
	var rows []resizeRow
	for _, bench := range []string{resized, resizedTight} {
		for _, w := range f[bench].Ways {
			tell := func(what string) string { return told(w.value(what)) }
			rows = append(rows, resizeRow{
				Bench: bench, Way: w.Name, Seconds: beside(f, bench, w, seconds), Writes: beside(f, bench, w, writes),
				Unready: tell(unready), AllUnready: tell(allUnready), Fewer: tell(fewer), Created: tell(created),
			})
		}
	}
	return rows
}

// beside returns a figure, and its ratio to the native one of the same run.
func beside(f figures, bench string, w way, what string) string {
	text := told(w.value(what))
	if ratio := f.times(bench, w.Name, what); w.Name != native && known(ratio) {
		text += fmt.Sprintf(" (%s × native)", number(ratio))
	}
	return text
}

func told(value float64) string {
	if !known(value) {
		return "not measured"
	}
	return number(value)
}
