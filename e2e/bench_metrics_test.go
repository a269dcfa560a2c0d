//go:build e2e && bench

package e2e

import (
	"context"
	"fmt"
	"math"
	"net/http"
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
	refused        float64 // those of the writes that it refused
	held           float64 // native writes held by Stayput
	cpu            float64 // seconds used by the managers
}

func (c counters) since(before counters) counters {
	return counters{
		writes:  c.writes - before.writes,
		events:  c.events - before.events,
		refused: c.refused - before.refused,
		held:    c.held - before.held,
		cpu:     c.cpu - before.cpu,
	}
}

// per is the share of each pod.
func (c counters) per(pods float64) counters {
	return counters{writes: c.writes / pods, events: c.events / pods, refused: c.refused / pods, held: c.held / pods, cpu: c.cpu / pods}
}

// write matches a series of requests to write something, dry runs left out. Prometheus' client sorts the labels.
var write = regexp.MustCompile(`(?m)^apiserver_request_total\{code="(\d+)",.*,dry_run="",.*,resource="(\w*)",.*` +
	`,verb="(?:POST|PUT|PATCH|APPLY|DELETE|DELETECOLLECTION)",.*\} (\S+)$`)

// apiWrites counts the requests so far, refused ones too. Those of leases and nodes go on always, and reviews write nothing.
func apiWrites(ctx context.Context) (counters, error) {
	text, err := clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return counters{}, fmt.Errorf("metrics of the API server: %w", err)
	}
	var count counters
	for _, series := range write.FindAllStringSubmatch(string(text), -1) {
		code, resource, value := number(series[1]), series[2], number(series[3])
		switch {
		case resource == "leases" || resource == "nodes" || strings.HasSuffix(resource, "reviews"):
			continue
		case resource == "events":
			count.events += value
			continue
		case code >= http.StatusBadRequest:
			count.refused += value
		}
		count.writes += value
	}
	return count, nil
}

// use is what the managers use: held and cpu are counters of all of them.
type use struct {
	held, cpu float64
	memory    float64 // MiB of the one that uses most
}

// managersUse is NaN where the managers' metrics cannot be reached, as under a NetworkPolicy.
func managersUse(ctx context.Context) use {
	text, err := metricsOf(ctx)
	if err != nil {
		fmt.Println("the managers' metrics cannot be reached:", err)
		return use{math.NaN(), math.NaN(), math.NaN()}
	}
	return use{
		held:   sum(text, "stayput_held_writes_total"),
		cpu:    sum(text, "process_cpu_seconds_total"),
		memory: quantile(seriesOf(text, "process_resident_memory_bytes"), 1) / (1 << 20),
	}
}

func sum(text, metric string) float64 {
	total := 0.0
	for _, value := range seriesOf(text, metric) {
		total += value
	}
	return total
}

// seriesOf are the values of all series of a metric.
func seriesOf(text, metric string) []float64 {
	var all []float64
	for line := range strings.Lines(text) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, _, _ := strings.Cut(series, "{"); name == metric {
			all = append(all, number(value))
		}
	}
	return all
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
