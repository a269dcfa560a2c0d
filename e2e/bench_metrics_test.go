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
	"strings"
)

// counters are what only ever grows. NaN is what cannot be read.
type counters struct {
	writes, events float64 // requests to the API server, those for events apart
	held           float64 // native writes held by Stayput
	cpu            float64 // seconds used by the managers
}

func (c counters) since(before counters) counters {
	return counters{
		writes: c.writes - before.writes,
		events: c.events - before.events,
		held:   c.held - before.held,
		cpu:    c.cpu - before.cpu,
	}
}

// write matches a series of requests to write something, dry runs left out. Prometheus' client sorts the labels.
var write = regexp.MustCompile(`(?m)^apiserver_request_total\{.*,dry_run="",.*,resource="(\w*)",.*` +
	`,verb="(?:POST|PUT|PATCH|APPLY|DELETE|DELETECOLLECTION)",.*\} (\S+)$`)

// apiWrites counts the requests so far, refused ones too. Those of leases and nodes go on always, and reviews write nothing.
func apiWrites(ctx context.Context) (counters, error) {
	text, err := clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return counters{}, fmt.Errorf("metrics of the API server: %w", err)
	}
	var count counters
	for _, series := range write.FindAllStringSubmatch(string(text), -1) {
		resource, value := series[1], number(series[2])
		switch {
		case resource == "leases" || resource == "nodes" || strings.HasSuffix(resource, "reviews"):
		case resource == "events":
			count.events += value
		default:
			count.writes += value
		}
	}
	return count, nil
}

// use is what all managers together use: held and cpu are counters.
type use struct {
	held, cpu float64
	memory    float64 // MiB
}

// managersUse is NaN where the managers' metrics cannot be reached, as under a NetworkPolicy.
func managersUse(ctx context.Context) use {
	text, err := metricsOf(ctx)
	if err != nil {
		fmt.Println("the managers' metrics cannot be reached:", err)
		return use{math.NaN(), math.NaN(), math.NaN()}
	}
	return use{
		held:   total(text, "stayput_held_writes_total"),
		cpu:    total(text, "process_cpu_seconds_total"),
		memory: total(text, "process_resident_memory_bytes") / (1 << 20),
	}
}

// total adds up all series of a metric.
func total(text, metric string) float64 {
	sum := 0.0
	for line := range strings.Lines(text) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, _, _ := strings.Cut(series, "{"); name == metric {
			sum += number(value)
		}
	}
	return sum
}

func number(text string) float64 {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("a metric is %q, which is no number", text))
	}
	return value
}

// inMemory matches a component and its memory.
var inMemory = regexp.MustCompile(`(?m)^(\S+) .* (\d+) MiB`)

// componentsUse is the memory of components of the test cluster, in MiB. Those that do not run are missing.
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
