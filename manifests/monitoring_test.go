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
	"github.com/stayput/stayput/internal/bynamespace"
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

// alerts returns the rules of charts/stayput/files/rules.yaml, by name.
func alerts(t *testing.T) map[string]rule {
	t.Helper()
	var file rules
	if err := yaml.Unmarshal([]byte(read(t, "../charts/stayput/files/rules.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	found := map[string]rule{}
	for _, group := range file.Groups {
		for _, each := range group.Rules {
			found[each.Alert] = each
		}
	}
	if len(found) == 0 {
		t.Fatal("charts/stayput/files/rules.yaml has no alerts")
	}
	return found
}

// board is what is read of charts/stayput/files/dashboard.json.
type board struct {
	Panels []struct {
		Title   string                  `json:"title"`
		Targets []struct{ Expr string } `json:"targets"`
	} `json:"panels"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

func dashboard(t *testing.T) (all board) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, "../charts/stayput/files/dashboard.json")), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// panels returns the expressions of charts/stayput/files/dashboard.json, by the title of their panel, with Grafana's variables filled in.
func panels(t *testing.T) map[string]string {
	t.Helper()
	filled := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$cluster", ".*", "$namespace", ".*")
	found := map[string]string{}
	for _, panel := range dashboard(t).Panels {
		for i, target := range panel.Targets {
			found[fmt.Sprintf("panel %q %d", panel.Title, i)] = filled.Replace(target.Expr)
		}
	}
	if len(found) == 0 {
		t.Fatal("charts/stayput/files/dashboard.json has no expressions")
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
	report.NewMetrics(controllers)
	var names []string
	for _, registry := range []prometheus.Gatherer{controllers, metrics.Registry} {
		names = append(names, described(registry.(prometheus.Collector))...)
	}
	return names
}

var fullName = regexp.MustCompile(`fqName: "([^"]+)"`)

// descriptions returns the descriptions of a collector's metrics.
func descriptions(collector prometheus.Collector) (all []string) {
	sent := make(chan *prometheus.Desc)
	go func() {
		defer close(sent)
		collector.Describe(sent)
	}()
	for description := range sent {
		all = append(all, description.String())
	}
	return all
}

// described returns the names of a collector's series. A description does not have the type of its metric, so each may be a histogram.
func described(collector prometheus.Collector) []string {
	var names []string
	for _, description := range descriptions(collector) {
		name := fullName.FindStringSubmatch(description)[1]
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

// labelNames matches the labels of a metric in its description.
var labelNames = regexp.MustCompile(`variableLabels: \{([^}]*)\}`)

// byNamespace returns the names of the metrics that have a namespace as a label.
func byNamespace(t *testing.T) (found []string) {
	t.Helper()
	controllers := prometheus.NewRegistry()
	report.NewMetrics(controllers)
	for _, registry := range []prometheus.Gatherer{controllers, metrics.Registry} {
		for _, description := range descriptions(registry.(prometheus.Collector)) {
			if slices.Contains(strings.Split(labelNames.FindStringSubmatch(description)[1], ","), bynamespace.Label) {
				found = append(found, fullName.FindStringSubmatch(description)[1])
			}
		}
	}
	return found
}

// selected matches a metric in an expression with its matchers.
var selected = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)

// TestDashboardSelects checks that every metric on the dashboard is selected by the variables cluster and, if it has that label, namespace.
func TestDashboardSelects(t *testing.T) {
	const cluster, namespace = `cluster=~"$cluster"`, bynamespace.Label + `=~"$namespace"`
	ofNamespaces := byNamespace(t)
	for _, panel := range dashboard(t).Panels {
		for _, target := range panel.Targets {
			metrics := selected.FindAllStringSubmatch(target.Expr, -1)
			if len(metrics) != strings.Count(target.Expr, cluster) || len(metrics) == 0 {
				t.Errorf("panel %q: each metric needs %s: %s", panel.Title, cluster, target.Expr)
			}
			for _, metric := range metrics {
				name := regexp.MustCompile("_(bucket|sum|count)$").ReplaceAllString(metric[1], "")
				if has := strings.Contains(metric[2], namespace); has != slices.Contains(ofNamespaces, name) {
					t.Errorf("panel %q: that %s has %s is %v", panel.Title, metric[0], namespace, has)
				}
			}
		}
	}
}

// TestDashboardHasVariables checks that the variables take their values from metrics that there are.
func TestDashboardHasVariables(t *testing.T) {
	known, variables := registered(t), map[string]string{}
	for _, variable := range dashboard(t).Templating.List {
		variables[variable.Name] = variable.Definition
	}
	for name, label := range map[string]string{"cluster": "cluster", "namespace": bynamespace.Label} {
		metric := selected.FindStringSubmatch(variables[name])
		if metric == nil || !slices.Contains(known, metric[1]) || !strings.HasSuffix(variables[name], ", "+label+")") {
			t.Errorf("variable %s is %q, want label_values of a metric's label %s", name, variables[name], label)
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
	report.NewMetrics(own)
	for metric := range slices.Chunk(described(own), 4) {
		if !slices.ContainsFunc(metric, func(name string) bool { return slices.Contains(shown, name) }) {
			t.Errorf("charts/stayput/files/dashboard.json does not show %s", metric[0])
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
			t.Errorf("docs/reference/alerts.md explains %s, which is no alert of charts/stayput/files/rules.yaml", heading)
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
