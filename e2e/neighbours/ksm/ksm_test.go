package ksm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// hold is for how many seconds the last values of the record go on.
const hold = 2400

// plain are rules as many clusters have them: alerts that know nothing of updates in place, and what kubernetes-mixin's alerts ask for.
const plain = `groups:
  - name: plain
    rules:
      - {alert: AnyRestart, expr: 'increase(kube_pod_container_status_restarts_total[1h]) > 0'}
      - {alert: CrashLoop, for: 15m, expr: 'max_over_time(kube_pod_container_status_waiting_reason{reason="CrashLoopBackOff"}[5m]) >= 1'}
      - {alert: PlainNotReady, for: 15m, expr: 'kube_pod_status_ready{condition="true"} == 0'}
      - alert: PlainDaemonSetStuck
        for: 15m
        expr: |
          kube_daemonset_status_updated_number_scheduled != kube_daemonset_status_desired_number_scheduled
            and changes(kube_daemonset_status_updated_number_scheduled[5m]) == 0
      - {alert: RolloutStuck, for: 15m, expr: 'kube_deployment_status_condition{condition="Progressing", status="false"} != 0'}
      - alert: GenerationMismatch
        for: 15m
        expr: kube_deployment_status_observed_generation != kube_deployment_metadata_generation
      - alert: ReplicasMismatch
        for: 15m
        expr: |
          kube_deployment_spec_replicas > kube_deployment_status_replicas_available
            and changes(kube_deployment_status_replicas_updated[10m]) == 0
`

// firing says for which pods, DaemonSets and Deployments the alerts fire at the end, as a PromQL selector, and how many.
var firing = map[string]map[string]int{
	// The rules of the page.
	"ContainerRestarts":     {`pod=~"crashing-.*"`: 1},
	"PodNotReady":           {`pod=~"crashing-.*"`: 1},
	"DaemonSetRolloutStuck": {},
	// The plain ones. The first three of these show why the page has its own.
	"AnyRestart": {
		`pod=~"crashing-.*"`: 1, `pod=~"updated-.*", pod!~"updated-agent-.*"`: 4, `pod=~"updated-agent-.*"`: 3,
		`pod=~"staged-.*", pod!~"staged-agent-.*"`: 2, `pod=~"staged-agent-.*"`: 1,
	},
	"PlainNotReady":       {`pod=~"crashing-.*"`: 1, `pod=~"missing-pull-.*"`: 3},
	"PlainDaemonSetStuck": {`daemonset="staged-agent"`: 1},
	"CrashLoop":           {`pod=~"crashing-.*"`: 1},
	"RolloutStuck":        {`deployment="missing"`: 1, `deployment="crashing"`: 1},
	"GenerationMismatch":  {},
	"ReplicasMismatch":    {`deployment="crashing"`: 1},
}

// TestRules runs promtool on the page's rules and on plain ones, with what kube-state-metrics exported during updates in place.
func TestRules(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "page.yaml", pageRules(t))
	write(t, folder, "plain.yaml", plain)
	write(t, folder, "test.yaml", unitTest(t))
	run := exec.Command(promtool(t), "test", "rules", "test.yaml")
	run.Dir = folder
	if output, err := run.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, output)
	}
}

// pageRules returns the rules that the page shows.
func pageRules(t *testing.T) string {
	text, err := os.ReadFile("../../../docs/how-to/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(groups:.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("monitoring.md has no rules")
	}
	return string(block[1])
}

// unitTest returns promtool's test: the record, whose last values go on, and what fires in the end.
func unitTest(t *testing.T) string {
	record, err := os.ReadFile("testdata/exported.txt")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("rule_files: [page.yaml, plain.yaml]\nevaluation_interval: 15s\ntests:\n  - interval: 1s\n    input_series:\n")
	for line := range strings.Lines(string(record)) {
		series, values, _ := strings.Cut(strings.TrimSpace(line), "\t")
		fmt.Fprintf(&text, "      - series: '%s'\n        values: '%s'\n", series, prolonged(values))
	}
	text.WriteString("    promql_expr_test:\n")
	for alert, counts := range firing {
		total := 0
		for selector, count := range counts {
			expect(&text, fmt.Sprintf(`count(ALERTS{alertstate="firing", alertname="%s", %s})`, alert, selector), count)
			total += count
		}
		expect(&text, fmt.Sprintf(`count(ALERTS{alertstate="firing", alertname="%s"})`, alert), total)
	}
	return text.String()
}

// prolonged lets the last value go on.
func prolonged(values string) string {
	runs := strings.Fields(values)
	last, _, _ := strings.Cut(runs[len(runs)-1], "x")
	if last == "stale" {
		last = "_"
	}
	return fmt.Sprintf("%s %sx%d", values, last, hold)
}

func expect(text *strings.Builder, expression string, value int) {
	fmt.Fprintf(text, "      - expr: '%s'\n        eval_time: %ds\n", expression, hold)
	if value > 0 {
		fmt.Fprintf(text, "        exp_samples: [{labels: '{}', value: %d}]\n", value)
	}
}

func write(t *testing.T, folder, name, text string) {
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// promtool returns the program's path. make verify-monitoring builds it as well.
func promtool(t *testing.T) string {
	path, err := filepath.Abs("../../../.cluster/bin/promtool")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	build := exec.Command("go", "build", "-o", path, "github.com/prometheus/prometheus/cmd/promtool")
	build.Dir = "../../../.ci/prometheus"
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build promtool: %v\n%s", err, output)
	}
	return path
}
