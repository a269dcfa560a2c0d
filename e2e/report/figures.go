package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
)

// figures are the results of all benches, by name, as e2e/bench_result_test.go writes them.
type figures map[string]result

// result is what one bench has measured, and where.
type result struct {
	Measured   string `json:"measured"`
	Commit     string `json:"commit"`
	Kubernetes string `json:"kubernetes"`
	Machine    string `json:"machine"`
	Ways       []way  `json:"ways"`
}

// way is one of the compared ways.
type way struct {
	Name    string    `json:"name"`
	Figures []figure  `json:"figures"`
	Updated []float64 `json:"updated"` // when each pod was updated, in seconds
	Steps   []float64 `json:"steps"`   // of each pod, without drain, in seconds
}

type figure struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
}

func read(path string) (figures, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w (make bench writes it)", err)
	}
	var all figures
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// way is empty if it was not measured.
func (f figures) way(bench, name string) way {
	ways := f[bench].Ways
	if at := slices.IndexFunc(ways, func(w way) bool { return w.Name == name }); at >= 0 {
		return ways[at]
	}
	return way{}
}

// value returns NaN if it was not measured.
func (f figures) value(bench, name, what string) float64 { return f.way(bench, name).value(what) }

// times returns the ratio of a figure to the native one; NaN if it is not known.
func (f figures) times(bench, name, what string) float64 {
	return f.value(bench, name, what) / f.value(bench, native, what)
}

func (w way) value(what string) float64 {
	if at := slices.IndexFunc(w.Figures, func(f figure) bool { return f.What == what }); at >= 0 {
		return w.Figures[at].Value
	}
	return math.NaN()
}

// quantile returns the smallest value that a share q of all values do not exceed. It returns NaN for no values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Ceil(q*float64(len(sorted))))-1]
}
