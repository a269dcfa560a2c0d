//go:build e2e && bench

package e2e

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// apiWrites returns the number of write requests so far.
func apiWrites(ctx context.Context) (counters, error) {
	server, err := serverMetrics(ctx)
	if err != nil {
		return counters{}, err
	}
	return writesOf(server)
}

// serverMetrics returns what the API server reports of itself.
func serverMetrics(ctx context.Context) (scraped, error) {
	text, err := clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	server, err := parseMetrics(string(text))
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	return server, nil
}

// use holds what the managers consume. held and cpu are counters, summed over all managers.
type use struct {
	held, cpu float64
	memory    float64 // MiB, of the manager with the most
}

// managersUse returns NaN where the managers' metrics cannot be reached, for example under a NetworkPolicy.
func managersUse(ctx context.Context) use {
	all, err := metricsOf(ctx)
	if err != nil {
		fmt.Println("the managers' metrics cannot be reached:", err)
		return use{math.NaN(), math.NaN(), math.NaN()}
	}
	return use{
		held:   sum(valuesOf(all, "stayput_held_writes_total")),
		cpu:    sum(valuesOf(all, "process_cpu_seconds_total")),
		memory: quantile(valuesOf(all, "process_resident_memory_bytes"), 1) / (1 << 20),
	}
}

func sum(values []float64) float64 {
	total := 0.0
	for _, value := range values {
		total += value
	}
	return total
}

func number(text string) float64 {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("%q is no number", text))
	}
	return value
}

// inMemory matches a component and its memory.
var inMemory = regexp.MustCompile(`(?m)^(\S+) .* (\d+) MiB`)

// componentsUse returns the memory of components of the test cluster, in MiB. It leaves out those that do not run.
func componentsUse(ctx context.Context, names ...string) (map[string]float64, error) {
	output, err := exec.CommandContext(ctx, filepath.Join(binaries, "cluster"), "status").Output()
	use := map[string]float64{}
	for _, row := range inMemory.FindAllStringSubmatch(string(output), -1) {
		if slices.Contains(names, row[1]) {
			use[row[1]] = number(row[2])
		}
	}
	if err != nil {
		return use, fmt.Errorf("cluster status: %w", err)
	}
	return use, nil
}
