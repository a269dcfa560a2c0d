// Command record updates workloads in place on the test cluster, and writes what kube-state-metrics exports meanwhile, as series of
// promtool's unit tests.
//
//	go run ./record > testdata/exported.txt
//
// It needs KUBECONFIG, kubectl on the PATH, and the images of the test cluster's registry. It creates and deletes a namespace.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	namespace = "neighbours-ksm"
	address   = "127.0.0.1:18080"
	seconds   = 100 // so many scrapes, one a second
)

// kept are the metrics that the rules of the page, and rules like them, read.
var kept = regexp.MustCompile(`^kube_(pod_(owner|labels|status_ready|status_phase|container_status_(restarts_total|waiting_reason))` +
	`|deployment_(spec_replicas|status_(condition|replicas_available|replicas_updated|observed_generation)|metadata_generation)` +
	`|daemonset_(labels|status_(updated_number_scheduled|desired_number_scheduled|current_number_scheduled|number_available|number_misscheduled))){`)

// workloads maps a Deployment's name to the image that it gets. All begin with app:v1.
var workloads = map[string]string{"updated": "app:v2", "staged": "app:v2", "missing": "app:missing", "crashing": "app:crash"}

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	folder, err := os.MkdirTemp("", "ksm")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	program := filepath.Join(folder, "kube-state-metrics")
	if err := command("go", "build", "-o", program, "k8s.io/kube-state-metrics/v2"); err != nil {
		return err
	}
	defer func() { _ = command("kubectl", "delete", "namespace", namespace, "--wait=false") }()
	if err := create(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	host, port, _ := strings.Cut(address, ":")
	exporter := exec.CommandContext(ctx, program, "--kubeconfig", os.Getenv("KUBECONFIG"), "--namespaces", namespace,
		"--host", host, "--port", port, "--telemetry-host", host, "--telemetry-port", "18081",
		"--resources", "pods,deployments,daemonsets",
		"--metric-labels-allowlist", "pods=[pod-template-hash,controller-revision-hash]",
		"--metric-annotations-allowlist", "daemonsets=[stayput.dev/partition]")
	exporter.Stderr = io.Discard
	if err := exporter.Start(); err != nil {
		return err
	}
	time.Sleep(5 * time.Second)
	scrapes := make(chan map[string]string, seconds)
	go scrape(scrapes)
	time.Sleep(3 * time.Second)
	if err := update(); err != nil {
		return err
	}
	printSeries(os.Stdout, scrapes)
	return nil
}

// create creates the workloads and waits until their pods are available.
func create() error {
	script := "kubectl create namespace " + namespace + " && kubectl label namespace " + namespace + " stayput.dev/update=in-place\n"
	for name := range workloads {
		script += fmt.Sprintf(deployment, name)
	}
	for _, name := range []string{"updated-agent", "staged-agent"} {
		script += fmt.Sprintf(daemonSet, name)
	}
	for name := range workloads {
		script += fmt.Sprintf("kubectl rollout status -n %s deployment/%s --timeout=2m\n", namespace, name)
	}
	return command("bash", "-euc", script)
}

func update() error {
	script := fmt.Sprintf("kubectl -n %[1]s annotate deployment/staged stayput.dev/partition=50%%\n"+
		"kubectl -n %[1]s annotate daemonset/staged-agent stayput.dev/partition=2\n", namespace)
	for name, image := range workloads {
		script += fmt.Sprintf("kubectl -n %s set image deployment/%s app=127.0.0.1:5000/%s\n", namespace, name, image)
	}
	for _, name := range []string{"updated-agent", "staged-agent"} {
		script += fmt.Sprintf("kubectl -n %s set image daemonset/%s app=127.0.0.1:5000/app:v2\n", namespace, name)
	}
	return command("bash", "-euc", script)
}

// deployment and daemonSet are shell commands that create a workload of a name.
const (
	deployment = "kubectl -n " + namespace + " apply -f - <<'EOF'\n" +
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s}, spec: {replicas: 4, progressDeadlineSeconds: 30, " + rest
	daemonSet = "kubectl -n " + namespace + " apply -f - <<'EOF'\n" +
		"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: %[1]s}, spec: {" + rest
	rest = "selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {" +
		"terminationGracePeriodSeconds: 2, containers: [{name: app, image: '127.0.0.1:5000/app:v1', " +
		"readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}}]}}}}\nEOF\n"
)

func command(name string, arguments ...string) error {
	c := exec.Command(name, arguments...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	return c.Run()
}

// scrape sends the values of the kept series, once a second.
func scrape(scrapes chan<- map[string]string) {
	defer close(scrapes)
	ticker := time.NewTicker(time.Second)
	for range seconds {
		<-ticker.C
		response, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			log.Print(err)
			return
		}
		values := map[string]string{}
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			line := lines.Text()
			if at := strings.LastIndex(line, " "); kept.MatchString(line) && at > 0 {
				values[line[:at]] = line[at+1:]
			}
		}
		if err := response.Body.Close(); err != nil {
			log.Print(err)
		}
		scrapes <- values
	}
}

// printSeries writes a line for each series: its name, a tab, and its values in promtool's notation. When a series ends, it is stale, as
// Prometheus marks it.
func printSeries(out io.Writer, scrapes <-chan map[string]string) {
	all := map[string][]string{}
	n := 0
	for values := range scrapes {
		for series := range values {
			for len(all[series]) < n {
				all[series] = append(all[series], "_")
			}
		}
		for series := range all {
			value, exported := values[series]
			if last := len(all[series]) - 1; !exported {
				value = "_"
				if last >= 0 && all[series][last] != "_" && all[series][last] != "stale" {
					value = "stale"
				}
			}
			all[series] = append(all[series], value)
		}
		n++
	}
	var names []string
	for series := range all {
		names = append(names, series)
	}
	slices.Sort(names)
	for _, series := range names {
		fmt.Fprintf(out, "%s\t%s\n", series, runs(all[series]))
	}
}

// runs writes repeated values as runs: 1x3 is 1 1 1 1, and _x3 is _ _ _.
func runs(values []string) string {
	var text []string
	for i := 0; i < len(values); {
		n := 1
		for i+n < len(values) && values[i+n] == values[i] {
			n++
		}
		switch values[i] {
		case "stale":
			text = append(text, "stale")
			if n > 1 {
				text = append(text, fmt.Sprintf("_x%d", n-1))
			}
		case "_":
			text = append(text, fmt.Sprintf("_x%d", n))
		default:
			text = append(text, fmt.Sprintf("%sx%d", values[i], n-1))
		}
		i += n
	}
	return strings.Join(text, " ")
}
