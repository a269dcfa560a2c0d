package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// scraped holds what one process reports at /metrics: its metrics by name.
type scraped map[string]*dto.MetricFamily

func parseMetrics(text string) (scraped, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(strings.NewReader(text))
}

// has reports whether there is a series of the metric with those labels; it may have others as well.
func (s scraped) has(metric string, labels map[string]string) bool {
	return slices.ContainsFunc(s[metric].GetMetric(), func(series *dto.Metric) bool {
		for name, value := range labels {
			if labelOf(series, name) != value {
				return false
			}
		}
		return true
	})
}

// valuesOf returns the values of all series of a counter or a gauge.
func valuesOf(all []scraped, metric string) []float64 {
	var values []float64
	for _, each := range all {
		for _, series := range each[metric].GetMetric() {
			values = append(values, amount(series))
		}
	}
	return values
}

// amount returns the value of a counter or a gauge. The other one of the two is nil, and reads as 0.
func amount(series *dto.Metric) float64 {
	return series.GetCounter().GetValue() + series.GetGauge().GetValue()
}

func labelOf(series *dto.Metric, name string) string {
	for _, label := range series.GetLabel() {
		if label.GetName() == name {
			return label.GetValue()
		}
	}
	return ""
}

// counters only ever grow. NaN stands for a counter that cannot be read.
type counters struct {
	writes, events float64                     // requests to the API server; those for events are counted apart
	refused        float64                     // the writes that it refused
	refusals       [len(refusable) + 1]float64 // the same by kind, and in the end all others
	held           float64                     // native writes held by Stayput
	cpu            float64                     // seconds used by the managers
}

// refusable are the writes whose refusals are counted apart: those that native controllers send while an update is made in place.
var refusable = [...]struct{ verb, resource, name string }{
	{"PUT", "replicasets", "PUT of ReplicaSets"},
	{"PUT", "deployments", "PUT of Deployments"},
	{"DELETE", "replicasets", "DELETE of ReplicaSets"},
	{"DELETE", "pods", "DELETE of pods"},
	{"POST", "pods", "POST of pods"},
}

func (c counters) since(before counters) counters {
	return c.with(before, func(now, before float64) float64 { return now - before })
}

// per divides the counters by the number of pods.
func (c counters) per(pods float64) counters {
	return c.with(c, func(count, _ float64) float64 { return count / pods })
}

// with combines each counter with that of other counters.
func (c counters) with(other counters, combine func(a, b float64) float64) counters {
	all := counters{
		writes:  combine(c.writes, other.writes),
		events:  combine(c.events, other.events),
		refused: combine(c.refused, other.refused),
		held:    combine(c.held, other.held),
		cpu:     combine(c.cpu, other.cpu),
	}
	for kind := range all.refusals {
		all.refusals[kind] = combine(c.refusals[kind], other.refusals[kind])
	}
	return all
}

// writing are the verbs of write requests.
var writing = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}

// writesOf counts the requests to an API server, including refused ones, without dry runs. It leaves out Leases and nodes, which are always
// written, and reviews, which write nothing.
func writesOf(server scraped) (counters, error) {
	var count counters
	for _, series := range server["apiserver_request_total"].GetMetric() {
		resource := labelOf(series, "resource")
		ignored := resource == "leases" || resource == "nodes" || strings.HasSuffix(resource, "reviews")
		if ignored || labelOf(series, "dry_run") != "" || !slices.Contains(writing, labelOf(series, "verb")) {
			continue
		}
		code, err := strconv.Atoi(labelOf(series, "code"))
		if err != nil {
			return counters{}, fmt.Errorf("the code of a request: %w", err)
		}
		count.add(labelOf(series, "verb"), resource, code, amount(series))
	}
	return count, nil
}

func (c *counters) add(verb, resource string, code int, requests float64) {
	if resource == "events" {
		c.events += requests
		return
	}
	c.writes += requests
	if code >= http.StatusBadRequest {
		c.refused += requests
		c.refusals[kindOfRefusal(verb, resource)] += requests
	}
}

// kindOfRefusal returns the place of a refused write in counters.refusals.
func kindOfRefusal(verb, resource string) int {
	for kind, write := range refusable {
		if write.verb == verb && write.resource == resource {
			return kind
		}
	}
	return len(refusable)
}
