package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/internal/bynamespace"
	"github.com/stayput/stayput/internal/version"
	_ "github.com/stayput/stayput/webhook" // registers its metrics
)

// metric is one of Stayput's own metrics.
type metric struct {
	Name, Type, Help string
	Labels           []string
}

// metricsPage is the data of the page.
type metricsPage struct {
	Metrics   []metric
	Decisions []constant
	// Label has the namespace; PerNamespace is how many series a labelled namespace has from the start.
	Label        string
	PerNamespace int
}

// readMetrics returns the metrics, and the values of the label decision.
func readMetrics() (page metricsPage, err error) {
	if page.Metrics, err = metrics(); err != nil {
		return page, err
	}
	page.Label = bynamespace.Label
	if page.PerNamespace, err = perNamespace(); err != nil {
		return page, err
	}
	ofDecisions := func(c constant) bool { return c.kind == "decision" && c.Value != "" }
	return page, constants("webhook", ofDecisions, &page.Decisions)
}

// perNamespace returns how many series the leader has for one labelled namespace from the start.
func perNamespace() (n int, err error) {
	registry := prometheus.NewRegistry()
	namespaces := report.NewMetrics(registry).Namespaces
	namespaces.Add("shop")
	namespaces.Begin()
	families, err := registry.Gather()
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if labels := series.GetLabel(); slices.ContainsFunc(labels, func(l *dto.LabelPair) bool { return l.GetValue() == "shop" }) {
				n += seriesOf(series)
			}
		}
	}
	return n, err
}

// seriesOf returns as how many series Prometheus stores a metric. A histogram has one for each bucket, the last without a bound, and two
// for sum and count.
func seriesOf(m *dto.Metric) int {
	if m.GetHistogram() == nil {
		return 1
	}
	return len(m.GetHistogram().GetBucket()) + len([]string{"+Inf", "sum", "count"})
}

// metrics returns the metrics that a manager registers, without controller-runtime's.
func metrics() ([]metric, error) {
	report.NewMetrics(ctrlmetrics.Registry)
	if err := version.Register(ctrlmetrics.Registry); err != nil {
		return nil, err
	}
	types, err := sampled(ctrlmetrics.Registry)
	if err != nil {
		return nil, err
	}
	var all []metric
	for _, description := range registered(ctrlmetrics.Registry.(prometheus.Collector)) {
		m, err := metricOf(description)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(m.Name, "stayput_") {
			continue
		}
		if m.Type = typed(m.Name, types); m.Type == "" {
			return nil, fmt.Errorf("metric %s has no sample and is not named _total: its type is not known", m.Name)
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b metric) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// registered returns the descriptions of all registered metrics.
func registered(registry prometheus.Collector) []string {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descriptions)
		close(descriptions)
	}()
	var all []string
	for description := range descriptions {
		all = append(all, description.String())
	}
	return all
}

// sampled returns the types of the metrics that have samples.
func sampled(registry prometheus.Gatherer) (map[string]string, error) {
	families, err := registry.Gather()
	types := map[string]string{}
	for _, family := range families {
		types[family.GetName()] = strings.ToLower(family.GetType().String())
	}
	return types, err
}

// typed returns the type of a metric: the type of its samples, or else counter if its name ends with _total. A vector has no samples until
// something is counted.
func typed(name string, types map[string]string) string {
	if kind, has := types[name]; has {
		return kind
	}
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return ""
}

// desc matches a description as the library prints it. The library has no other access to the parts of a description.
var desc = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)

func metricOf(description string) (metric, error) {
	parts := desc.FindStringSubmatch(description)
	if parts == nil {
		return metric{}, fmt.Errorf("cannot read the description %s", description)
	}
	name, err := strconv.Unquote(parts[1])
	if err != nil {
		return metric{}, err
	}
	help, err := strconv.Unquote(parts[2])
	m := metric{Name: name, Help: strings.TrimSuffix(help, ".")}
	if parts[3] != "" {
		m.Labels = strings.Split(parts[3], ",")
	}
	return m, err
}
