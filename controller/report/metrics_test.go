package report

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// counted are metrics of each kind: a counter with its sum of all namespaces, and two that say what is in progress.
var counted = []string{
	"stayput_updates_started_total", "stayput_updates_failed_total", "stayput_updates_in_flight", "stayput_updates_stalled",
}

// wants compares the metrics of counted with these lines, without # HELP and # TYPE.
func (s *story) wants(when, lines string) {
	s.T.Helper()
	s.wantsOf(when, lines, counted...)
}

func (s *story) wantsOf(when, lines string, names ...string) {
	s.T.Helper()
	families, err := s.Registry.Gather()
	if err != nil {
		s.T.Fatal(err)
	}
	var expected strings.Builder
	for _, family := range families {
		if strings.Contains(lines, family.GetName()) {
			expected.WriteString("# HELP " + family.GetName() + " " + family.GetHelp() + "\n")
			expected.WriteString("# TYPE " + family.GetName() + " " + strings.ToLower(family.GetType().String()) + "\n")
		}
	}
	expected.WriteString(strings.ReplaceAll(lines, "\t", "") + "\n")
	if err := testutil.GatherAndCompare(s.Registry, strings.NewReader(expected.String()), names...); err != nil {
		s.T.Errorf("%s: %v", when, err)
	}
}

func TestMetricsOfANamespace(t *testing.T) {
	s := newStory(t)
	s.wants("at first", `
		stayput_updates_in_flight{workload_namespace=""} 0
		stayput_updates_in_flight{workload_namespace="shop"} 0
		stayput_updates_stalled{workload_namespace=""} 0
		stayput_updates_stalled{workload_namespace="shop"} 0
		stayput_updates_started_total{mode="in-place",workload_namespace=""} 0
		stayput_updates_started_total{mode="in-place",workload_namespace="shop"} 0
		stayput_updates_started_total{mode="in-place-only",workload_namespace=""} 0
		stayput_updates_started_total{mode="in-place-only",workload_namespace="shop"} 0`)
	s.begin()
	s.wants("during the update", `
		stayput_updates_in_flight{workload_namespace=""} 0
		stayput_updates_in_flight{workload_namespace="shop"} 1
		stayput_updates_stalled{workload_namespace=""} 0
		stayput_updates_stalled{workload_namespace="shop"} 0
		stayput_updates_started_total{mode="in-place",workload_namespace=""} 0
		stayput_updates_started_total{mode="in-place",workload_namespace="shop"} 1
		stayput_updates_started_total{mode="in-place-only",workload_namespace=""} 0
		stayput_updates_started_total{mode="in-place-only",workload_namespace="shop"} 0`)
	s.metrics.Namespaces.Remove(shop)
	s.wants("without the label", `
		stayput_updates_in_flight{workload_namespace=""} 1
		stayput_updates_stalled{workload_namespace=""} 0
		stayput_updates_started_total{mode="in-place",workload_namespace=""} 0
		stayput_updates_started_total{mode="in-place-only",workload_namespace=""} 0`)
	s.report(steps.Plan{Decision: steps.Decision{Reasons: inplace.Reasons{{Code: inplace.CodeMode, Message: "no label"}}}}, persisted)
	s.wants("the update has ended since", `
		stayput_updates_in_flight{workload_namespace=""} 0
		stayput_updates_stalled{workload_namespace=""} 0
		stayput_updates_failed_total{mode="in-place",reason="Mode",workload_namespace=""} 1
		stayput_updates_started_total{mode="in-place",workload_namespace=""} 0
		stayput_updates_started_total{mode="in-place-only",workload_namespace=""} 0`)
	s.metrics.Namespaces.Add(shop)
	s.wantsOf("labelled again", `
		stayput_updates_started_total{mode="in-place",workload_namespace=""} 0
		stayput_updates_started_total{mode="in-place",workload_namespace="shop"} 0
		stayput_updates_started_total{mode="in-place-only",workload_namespace=""} 0
		stayput_updates_started_total{mode="in-place-only",workload_namespace="shop"} 0`, "stayput_updates_started_total")
}

// TestMetricsOfAllKinds counts an update of a Deployment and one of a DaemonSet.
func TestMetricsOfAllKinds(t *testing.T) {
	s := newStory(t)
	s.begin()
	daemonSets := New(observe.DaemonSets, s.Recorder, s.metrics)
	daemonSets.Updates[types.NamespacedName{Namespace: shop, Name: "agent"}] = &update{still: true}
	s.wantsOf("two updates", `
		stayput_updates_in_flight{workload_namespace=""} 0
		stayput_updates_in_flight{workload_namespace="shop"} 2
		stayput_updates_stalled{workload_namespace=""} 0
		stayput_updates_stalled{workload_namespace="shop"} 1`, "stayput_updates_in_flight", "stayput_updates_stalled")
}

// TestMetricsOfAManagerThatDoesNotLead has no series of namespaces.
func TestMetricsOfAManagerThatDoesNotLead(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	all, err := testutil.GatherAndCount(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.Namespaces.Add("shop")
	if n, err := testutil.GatherAndCount(registry); n != all || err != nil {
		t.Errorf("a labelled namespace has %d series (%v), want none", n-all, err)
	}
	m.Namespaces.Begin()
	if n, err := testutil.GatherAndCount(registry); n != 2*all || err != nil {
		t.Errorf("%d series (%v), want as many for the namespace as for none: %d", n, err, 2*all)
	}
}
