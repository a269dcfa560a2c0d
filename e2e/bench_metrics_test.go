//go:build e2e && bench

package e2e

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	memory    memory
}

// memory is that of the manager with the most, in MiB. Resident memory has the pages of the binary, too, which the system can take back at
// any time. Anonymous memory is what the manager itself has filled.
type memory struct{ resident, anonymous float64 }

// most returns the larger value of each.
func (m memory) most(other memory) memory {
	return memory{max(m.resident, other.resident), max(m.anonymous, other.anonymous)}
}

func (m memory) figures() []figure {
	return []figure{{"MiB of the larger manager", m.resident}, {"MiB of the larger manager, anonymous", m.anonymous}}
}

// managersUse returns NaN where the managers' metrics cannot be reached, for example under a NetworkPolicy.
func managersUse(ctx context.Context) use {
	all, err := metricsOf(ctx)
	if err != nil {
		fmt.Println("the managers' metrics cannot be reached:", err)
		return use{math.NaN(), math.NaN(), memory{math.NaN(), math.NaN()}}
	}
	return use{
		held: sum(valuesOf(all, "stayput_held_writes_total")),
		cpu:  sum(valuesOf(all, "process_cpu_seconds_total")),
		memory: memory{
			resident:  quantile(valuesOf(all, "process_resident_memory_bytes"), 1) / (1 << 20),
			anonymous: quantile(anonymousOf(managerCommand), 1),
		},
	}
}

// managerCommand is how the command line of a manager begins. Its image has one program, as those of the tests' applications have.
const managerCommand = "/app\x00manager\x00"

var anonymousMemory = regexp.MustCompile(`(?m)^RssAnon:\s*(\d+) kB$`)

// anonymousOf returns the anonymous memory of each process of this machine whose command line begins so, in MiB. No metric has it.
func anonymousOf(command string) []float64 {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var all []float64
	for _, line := range lines {
		if content, _ := os.ReadFile(line); !strings.HasPrefix(string(content), command) {
			continue
		}
		if kib := firstIn(filepath.Join(filepath.Dir(line), "status"), anonymousMemory); kib != "" {
			all = append(all, number(kib)/(1<<10))
		}
	}
	return all
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
