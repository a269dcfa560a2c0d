// Command recording makes docs/recording.svg, the recording that README shows: recording FILE runs an update in place on the cluster of
// $KUBECONFIG, in a namespace of its own, and writes what the terminal showed as an animated picture.
//
//	main.go    the workload, the commands, and the run
//	record.go  runs commands and keeps what they print, with its time
//	play.go    when each line appears in the playback: long waits are shortened
//	render.go  the playback as SVG
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// workload has four pods, so by default one of them may be unavailable. Its Service sends requests to them, so each pod is drained first.
const workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: app
          image: 127.0.0.1:5000/app:v1
          readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`

// shown are the commands of the recording.
var shown = []string{
	"kubectl -n shop get pods",
	"kubectl -n shop set image deployment/web app=127.0.0.1:5000/app:v2",
	"kubectl -n shop rollout status deployment/web | tail -1",
	"kubectl -n shop get pods",
	"kubectl stayput status -n shop deploy/web",
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("wants the file to write: recording docs/recording.svg")
	}
	version, err := kubernetes()
	if err != nil {
		return err
	}
	lines, err := session()
	if err != nil {
		return err
	}
	title := fmt.Sprintf("Recorded on Kubernetes %s, %s. Waits are shortened.", version, time.Now().UTC().Format(time.DateOnly))
	return os.WriteFile(arguments[0], []byte(render(title, play(lines))), 0o644)
}

// session labels a namespace, creates the workload, runs the commands that are shown, and removes the namespace. It fails if that exists.
func session() ([]line, error) {
	if err := silently("", "create", "namespace", "shop"); err != nil {
		return nil, err
	}
	defer func() { _ = silently("", "delete", "namespace", "shop", "--wait=false") }()
	err := errors.Join(
		silently("", "label", "namespace", "shop", "stayput.dev/update=in-place"),
		silently(workload, "create", "-f", "-"),
		silently("", "-n", "shop", "rollout", "status", "deployment/web", "--timeout=90s"),
	)
	if err != nil {
		return nil, err
	}
	return record(shown, reading)
}

// silently runs kubectl with this input. What it prints is only in the error.
func silently(input string, arguments ...string) error {
	command := exec.Command("kubectl", arguments...)
	command.Stdin = strings.NewReader(input)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, output)
	}
	return nil
}

// kubernetes returns the cluster's version.
func kubernetes() (string, error) {
	answer, err := exec.Command("kubectl", "get", "--raw", "/version").Output()
	if err != nil {
		return "", fmt.Errorf("kubectl get --raw /version: %w", err)
	}
	var version struct{ GitVersion string }
	if err := json.Unmarshal(answer, &version); err != nil {
		return "", err
	}
	return version.GitVersion, nil
}
