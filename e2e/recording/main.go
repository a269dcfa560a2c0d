// Command recording makes the recordings of README and of the command line: recording FOLDER runs updates in place on the cluster of
// $KUBECONFIG, in a namespace of its own, and writes what the terminal showed as animated pictures.
//
//	main.go    the workload, the commands, and the run
//	record.go  runs commands and keeps what they print, with its time
//	play.go    when each line appears in the playback: long waits are shortened, and cells that differ from an earlier output stand out
//	render.go  the playback as SVG
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// workload has three pods, of which one may be unavailable. Its Service sends requests to them, so each pod is drained first.
const workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  strategy: {rollingUpdate: {maxUnavailable: 1}}
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

// columns are those of the pods, which the first recording shows before and after an update.
const columns = "NAME:.metadata.name,UID:.metadata.uid,IMAGE:.spec.containers[0].image,RESTARTS:.status.containerStatuses[0].restartCount"

// recording is a picture, and the commands that it shows.
type recording struct {
	file  string
	shown []string
}

// recordings follow each other in one namespace.
var recordings = []recording{
	{"recording.svg", []string{
		"kubectl -n shop get pods -o custom-columns=$columns",
		"kubectl -n shop set image deployment/web app=127.0.0.1:5000/app:v2",
		"kubectl -n shop rollout status deployment/web >/dev/null",
		"kubectl -n shop get pods -o custom-columns=$columns",
	}},
	{"watch.svg", []string{"kubectl -n shop rollout undo deployment/web; kubectl stayput status -n shop deploy/web --watch"}},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("wants the folder to write to: recording docs")
	}
	version, err := kubernetes()
	if err != nil {
		return err
	}
	title := fmt.Sprintf("Recorded on Kubernetes %s, %s. Waits are shortened.", version, time.Now().UTC().Format(time.DateOnly))
	return session(func(r recording) error {
		lines, err := record(r.shown, reading)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(arguments[0], r.file), []byte(render(title, play(lines))), 0o644)
	})
}

// session labels a namespace, creates the workload, makes the recordings, and removes the namespace. It fails if that exists.
func session(each func(recording) error) error {
	if err := silently("", "create", "namespace", "shop"); err != nil {
		return err
	}
	defer func() { _ = silently("", "delete", "namespace", "shop", "--wait=false") }()
	err := errors.Join(
		os.Setenv("columns", columns),
		silently("", "label", "namespace", "shop", "stayput.dev/update=in-place"),
		silently(workload, "create", "-f", "-"),
		silently("", "-n", "shop", "rollout", "status", "deployment/web", "--timeout=90s"),
	)
	for _, r := range recordings {
		if err == nil {
			err = each(r)
		}
	}
	return err
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
