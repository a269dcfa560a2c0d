//go:build e2e && monitoring

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// prometheus is a Prometheus that scrapes the managers.
type prometheus struct {
	*scenario
	prometheusv1.API
}

// unreachable are panels that show nothing as long as there are no failures: their series begin with the first value.
var unreachable = map[string]bool{
	"Updates not completed in place, by reason": true,
}

// silentExpressions are expressions of other panels that have no values either as long as there are no failures.
var silentExpressions = []string{"stayput_updates_failed_total"}

// quiet are the alerts that must not fire in a cluster in which one update has succeeded.
var quiet = []string{"StayputNoLeader", "StayputWebhookBypassed", "StayputUpdateStalled", "StayputNoPodMoves"}

// TestMonitoring evaluates every expression of charts/stayput/files on a real Prometheus, after one update in place. make e2e-monitoring
// builds Prometheus and passes its path.
func TestMonitoring(t *testing.T) {
	binary := os.Getenv("PROMETHEUS")
	if binary == "" {
		t.Skip("PROMETHEUS is not set; make e2e-monitoring does that")
	}
	s := newScenario(t, labelled)
	s.create(web(3))
	p := s.prometheus(binary)
	p.scrapes()
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	// rate and increase need a sample from before the update and one from after it.
	p.eventually("the update to be seen", p.has("sum(increase(stayput_pods_moved_total[1h])) >= 3"))
	t.Run("dashboard", func(t *testing.T) { p.dashboard(t, ".*") })
	t.Run("dashboard of a namespace", func(t *testing.T) { p.dashboard(t, s.namespace) })
	t.Run("alerts", p.alerts)
}

// prometheus starts a Prometheus on a free port of this machine, and stops it at the end of the test.
func (s *scenario) prometheus(binary string) prometheus {
	s.Helper()
	folder, address := s.TempDir(), freeAddress(s.T)
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		s.Fatal(err)
	}
	command := exec.Command(binary, "--config.file="+s.scrapeConfig(folder), "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--web.listen-address="+address)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); s.Failed() && err == nil {
			s.Logf("Prometheus said:\n%s", text)
		}
	})
	client, err := api.NewClient(api.Config{Address: "http://" + address})
	if err != nil {
		s.Fatal(err)
	}
	return prometheus{s, prometheusv1.NewAPI(client)}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// object is a part of Prometheus' configuration.
type object map[string]any

// scrapeConfig writes a configuration that scrapes each manager through the API server, as the user of the kubeconfig.
func (s *scenario) scrapeConfig(folder string) string {
	s.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		s.Fatal(err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		s.Fatal(err)
	}
	write := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			s.Fatal(err)
		}
		return path
	}
	text, err := yaml.Marshal(object{
		"global":     object{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{filepath.Join(repository, "charts", "stayput", "files", "rules.yaml")},
		"scrape_configs": []object{{
			"job_name": ownName, "scheme": "https", "static_configs": s.targets(config.Host),
			"tls_config": object{"ca_file": write("ca.crt", config.CAData), "cert_file": write("tls.crt", config.CertData),
				"key_file": write("tls.key", config.KeyData), "server_name": config.ServerName},
		}},
	})
	if err != nil {
		s.Fatal(err)
	}
	return write("prometheus.yaml", text)
}

// targets returns the scrape targets: the managers, each behind the API server's proxy to its pod.
func (s *scenario) targets(server string) []object {
	s.Helper()
	pods, err := clients.CoreV1().Pods(ownNamespace).List(s.Context(), managers)
	if err != nil {
		s.Fatal(err)
	}
	var targets []object
	for _, pod := range pods.Items {
		targets = append(targets, object{
			"targets": []string{strings.TrimPrefix(server, "https://")},
			"labels": object{
				"__metrics_path__": fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8080/proxy/metrics", ownNamespace, pod.Name),
				"namespace":        ownNamespace, "pod": pod.Name,
			},
		})
	}
	return targets
}

// scrapes waits until each manager has been scraped.
func (p prometheus) scrapes() {
	p.Helper()
	p.eventually("a scrape of each manager", func(ctx context.Context) error {
		up, err := p.ask(ctx, "up")
		if err != nil {
			return err
		}
		if len(up) == 0 {
			return fmt.Errorf("nothing was scraped yet")
		}
		for _, target := range up {
			if target.Value != 1 {
				return fmt.Errorf("%s is not scraped", target.Metric)
			}
		}
		return nil
	})
}

// ask evaluates an expression now. A warning is an error, because a correct expression causes none.
func (p prometheus) ask(ctx context.Context, expression string) (model.Vector, error) {
	value, warnings, err := p.Query(ctx, expression, time.Now())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expression, err)
	}
	for _, warning := range warnings {
		if !strings.HasPrefix(warning, "PromQL info:") {
			return nil, fmt.Errorf("%s: %s", expression, warning)
		}
	}
	series, is := value.(model.Vector)
	if !is {
		return nil, fmt.Errorf("%s is %s, want series", expression, value.Type())
	}
	return series, nil
}

func (p prometheus) has(expression string) func(context.Context) error {
	return func(ctx context.Context) error {
		series, err := p.ask(ctx, expression)
		if err == nil && len(series) == 0 {
			err = fmt.Errorf("%s has no series", expression)
		}
		return err
	}
}

// dashboard evaluates the expressions of each panel, for all clusters and these namespaces.
func (p prometheus) dashboard(t *testing.T, namespaces string) {
	var dashboard struct {
		Panels []struct {
			Title   string                  `json:"title"`
			Targets []struct{ Expr string } `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(shipped(t, "dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	filled := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$cluster", ".*", "$namespace", namespaces)
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			expression := filled.Replace(target.Expr)
			series, err := p.ask(t.Context(), expression)
			switch maySay := unreachable[panel.Title] || mentions(expression, silentExpressions); {
			case err != nil:
				t.Errorf("panel %q: %v", panel.Title, err)
			case len(series) == 0 && !maySay:
				t.Errorf("panel %q: %s has no series", panel.Title, expression)
			}
		}
	}
}

func mentions(expression string, names []string) bool {
	for _, name := range names {
		if strings.Contains(expression, name) {
			return true
		}
	}
	return false
}

// alerts asks Prometheus for the health of each rule.
func (p prometheus) alerts(t *testing.T) {
	p.eventually("every rule to be evaluated", func(ctx context.Context) error {
		return p.eachAlert(ctx, func(rule prometheusv1.AlertingRule) error {
			if rule.Health != prometheusv1.RuleHealthGood {
				return fmt.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
			return nil
		})
	})
	err := p.eachAlert(t.Context(), func(rule prometheusv1.AlertingRule) error {
		if mentions(rule.Name, quiet) && len(rule.Alerts) > 0 {
			return fmt.Errorf("%s fires: %v", rule.Name, rule.Alerts[0].Annotations)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func (p prometheus) eachAlert(ctx context.Context, check func(prometheusv1.AlertingRule) error) error {
	found, err := p.Rules(ctx)
	if err != nil {
		return err
	}
	for _, group := range found.Groups {
		for _, rule := range group.Rules {
			alert, is := rule.(prometheusv1.AlertingRule)
			if !is {
				return fmt.Errorf("%v is no alert", rule)
			}
			if err := check(alert); err != nil {
				return err
			}
		}
	}
	return nil
}

func shipped(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, "charts", "stayput", "files", file))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
