// Package verdict compares the results of the same tests natively and in place.
package verdict

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

// Event is the name of the report entries that hold the reason of an event that Controller, Stayput, emitted in a test's namespace.
const (
	Event      = "Stayput's event"
	Controller = "stayput"
)

// Runs are the results of the tests in a cluster.
type Runs struct{ native, inPlace run }

// run has the outcome of each test that ran, and the failures outside of tests.
type run struct {
	tests  map[string]outcome
	broken []string
}

type outcome struct {
	passed bool
	// failure is the first line of the failure of a test.
	failure string
	took    time.Duration
	// events counts Stayput's events by reason.
	events map[string]int
}

// Read reads the JSON reports of both runs.
func Read(native, inPlace string) (*Runs, error) {
	before, err := read(native)
	if err != nil {
		return nil, err
	}
	after, err := read(inPlace)
	return &Runs{native: before, inPlace: after}, err
}

func read(file string) (run, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return run{}, fmt.Errorf("the tests ended without a report: %w", err)
	}
	var reports []types.Report
	if err := json.Unmarshal(content, &reports); err != nil {
		return run{}, fmt.Errorf("%s is no JSON report of ginkgo: %w", file, err)
	}
	return collect(reports), nil
}

func collect(reports []types.Report) run {
	result := run{tests: map[string]outcome{}}
	for _, report := range reports {
		result.broken = append(result.broken, report.SpecialSuiteFailureReasons...)
		for _, spec := range report.SpecReports {
			result.add(spec)
		}
	}
	return result
}

// add leaves out tests that were not selected and tests that skipped themselves, as those do that need a cloud.
func (r *run) add(spec types.SpecReport) {
	switch {
	case spec.State.Is(types.SpecStateSkipped | types.SpecStatePending):
	case spec.LeafNodeType == types.NodeTypeIt:
		r.tests[name(spec)] = outcomeOf(spec)
	case spec.Failed():
		r.broken = append(r.broken, fmt.Sprintf("%s: %s", spec.LeafNodeType, firstLine(spec.FailureMessage())))
	}
}

func outcomeOf(spec types.SpecReport) outcome {
	events := map[string]int{}
	for _, entry := range spec.ReportEntries {
		if entry.Name == Event {
			events[entry.StringRepresentation()]++
		}
	}
	return outcome{
		passed:  spec.State.Is(types.SpecStatePassed),
		failure: firstLine(spec.FailureMessage()),
		took:    spec.RunTime,
		events:  events,
	}
}

// labels matches the labels in the name of a test, such as [Conformance].
var labels = regexp.MustCompile(`\s*\[[^\]]*\]\s*`)

func name(spec types.SpecReport) string {
	return strings.TrimSpace(labels.ReplaceAllString(spec.FullText(), " "))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSuffix(line, ":")
}

// names returns all tests, in order.
func (r *Runs) names() []string {
	all := maps.Clone(r.native.tests)
	maps.Copy(all, r.inPlace.tests)
	return slices.Sorted(maps.Keys(all))
}
