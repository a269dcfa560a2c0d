package manifests

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	_ "github.com/stayput/stayput/controller" // registers controller-runtime's metrics
	"github.com/stayput/stayput/controller/report"
	_ "github.com/stayput/stayput/webhook" // registers its metrics
)

// rules is a file of Prometheus rule groups.
type rules struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// alerts returns the rules of monitoring/rules.yaml, by name.
func alerts(t *testing.T) map[string]rule {
	t.Helper()
	var file rules
	if err := yaml.Unmarshal([]byte(read(t, "monitoring/rules.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	found := map[string]rule{}
	for _, group := range file.Groups {
		for _, each := range group.Rules {
			found[each.Alert] = each
		}
	}
	if len(found) == 0 {
		t.Fatal("monitoring/rules.yaml has no alerts")
	}
	return found
}

// panels returns the expressions of monitoring/dashboard.json, by the title of their panel, with Grafana's variables filled in.
func panels(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string                  `json:"title"`
			Targets []struct{ Expr string } `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(read(t, "monitoring/dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	filled := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h")
	found := map[string]string{}
	for _, panel := range dashboard.Panels {
		for i, target := range panel.Targets {
			found[fmt.Sprintf("panel %q %d", panel.Title, i)] = filled.Replace(target.Expr)
		}
	}
	if len(found) == 0 {
		t.Fatal("monitoring/dashboard.json has no expressions")
	}
	return found
}

// monitored returns all expressions of rules and dashboard.
func monitored(t *testing.T) map[string]string {
	t.Helper()
	all := panels(t)
	for name, rule := range alerts(t) {
		all["alert "+name] = rule.Expr
	}
	return all
}

// registered returns the names of all series that a manager may have.
func registered(t *testing.T) []string {
	t.Helper()
	controllers := prometheus.NewRegistry()
	report.RegisterMetrics(controllers)
	var names []string
	for _, registry := range []prometheus.Gatherer{controllers, metrics.Registry} {
		names = append(names, described(registry.(prometheus.Collector))...)
	}
	return names
}

var fullName = regexp.MustCompile(`fqName: "([^"]+)"`)

// described returns the names of a collector's series. A description does not have the type of its metric, so each may be a histogram.
func described(collector prometheus.Collector) []string {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		collector.Describe(descriptions)
	}()
	var names []string
	for description := range descriptions {
		name := fullName.FindStringSubmatch(description.String())[1]
		names = append(names, name, name+"_bucket", name+"_sum", name+"_count")
	}
	return names
}

var (
	// notNames matches what an expression has besides names of metrics: strings, matchers, ranges and lists of labels.
	notNames = regexp.MustCompile(`"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)|\boffset\s+\S+`)
	names    = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\b\s*\(?`)
	keywords = []string{"and", "or", "unless", "bool"}
)

// named returns the metrics that an expression names.
func named(expression string) []string {
	found := map[string]bool{}
	for _, name := range names.FindAllString(notNames.ReplaceAllString(expression, " "), -1) {
		if name = strings.TrimSpace(name); !strings.HasSuffix(name, "(") && !slices.Contains(keywords, name) {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func TestMonitoringReadsExpressions(t *testing.T) {
	got := named(`sum by (kind, le) (rate(a_total{b=~"c[d]", e="f"}[5m:1m])) / 2 > bool 0 and on (pod) (g unless g offset 1h) ` +
		`or histogram_quantile(0.9, h_bucket)`)
	if want := []string{"a_total", "g", "h_bucket"}; !slices.Equal(got, want) {
		t.Errorf("the metrics are %q, want %q", got, want)
	}
}

// TestMonitoringNamesWhatThereIs checks that every metric in an expression exists. Prometheus reports no error if a metric does not exist.
func TestMonitoringNamesWhatThereIs(t *testing.T) {
	known := registered(t)
	for where, expression := range monitored(t) {
		metrics := named(expression)
		if len(metrics) == 0 {
			t.Errorf("%s names no metric: %s", where, expression)
		}
		for _, metric := range metrics {
			if !slices.Contains(known, metric) {
				t.Errorf("%s: the managers have no metric %s", where, metric)
			}
		}
	}
}

// TestMonitoringShowsEveryMetric checks that each of Stayput's metrics is on a panel of the dashboard.
func TestMonitoringShowsEveryMetric(t *testing.T) {
	var shown []string
	for _, expression := range panels(t) {
		shown = append(shown, named(expression)...)
	}
	own := prometheus.NewRegistry()
	report.RegisterMetrics(own)
	for metric := range slices.Chunk(described(own), 4) {
		if !slices.ContainsFunc(metric, func(name string) bool { return slices.Contains(shown, name) }) {
			t.Errorf("monitoring/dashboard.json does not show %s", metric[0])
		}
	}
}

// TestAlertsAreExplained checks that each alert has a heading in docs/reference/alerts.md, and a link to it.
func TestAlertsAreExplained(t *testing.T) {
	page := read(t, "../docs/reference/alerts.md")
	explained := []string{}
	for line := range strings.Lines(page) {
		if heading, is := strings.CutPrefix(line, "## "); is {
			explained = append(explained, strings.TrimSpace(heading))
		}
	}
	rules := alerts(t)
	for name, rule := range rules {
		if !slices.Contains(explained, name) {
			t.Errorf("docs/reference/alerts.md says nothing of %s: it needs the heading ## %s", name, name)
		}
		if want := "docs/reference/alerts.md#" + strings.ToLower(name); !strings.HasSuffix(rule.Annotations["runbook_url"], want) {
			t.Errorf("%s: runbook_url is %q, want one that ends with %s", name, rule.Annotations["runbook_url"], want)
		}
	}
	for _, heading := range explained {
		if _, is := rules[heading]; !is {
			t.Errorf("docs/reference/alerts.md explains %s, which is no alert of monitoring/rules.yaml", heading)
		}
	}
}

// TestDashboardIsPromQL has promtool parse the dashboard's expressions, as recording rules. make verify-monitoring sets PROMTOOL.
func TestDashboardIsPromQL(t *testing.T) {
	promtool := os.Getenv("PROMTOOL")
	if promtool == "" {
		t.Skip("PROMTOOL is not set; make verify-monitoring does that")
	}
	recorded := rules{Groups: make([]struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}, 1)}
	recorded.Groups[0].Name = "dashboard"
	for i, expression := range slices.Sorted(maps.Values(panels(t))) {
		recorded.Groups[0].Rules = append(recorded.Groups[0].Rules, rule{Record: fmt.Sprintf("panel:%d", i), Expr: expression})
	}
	text, err := yaml.Marshal(recorded)
	if err != nil {
		t.Fatal(err)
	}
	check := exec.Command(promtool, "check", "rules", "--lint=none")
	check.Stdin = strings.NewReader(string(text))
	if output, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, output)
	}
}
