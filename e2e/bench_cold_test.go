//go:build e2e && bench

package e2e

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// coldPull is the minimum duration of a pull through the slow registry.
const coldPull = 12 * time.Second

// benchCold updates a DaemonSet, because each of its pods has a node to itself. It updates to an image that every node has, and to one that
// each node needs coldPull to pull. Images are pulled before containers stop if the time for which a pod is not Ready is the same for both.
func benchCold(t *testing.T) {
	host := slowRegistry(t)
	var all []column
	defer func() { present(t, fmt.Sprintf("DaemonSet, a pull takes %s", coldPull), all) }()
	for _, c := range []struct {
		name   string
		labels map[string]string
		cached bool
	}{
		{"cached", labelled, true},
		{"cold", labelled, false},
		{"cold, not first", unpulled, false},
		{"cold, native", unlabelled, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			reference := host + "/app:" + pushCold(t)
			if c.cached {
				warm(t, reference)
			}
			fmt.Printf("a DaemonSet is updated to an image that is %s\n", c.name)
			all = append(all, column{name: c.name, figures: updateTo(t, c.labels, reference)})
		})
	}
}

// warm runs an image on every node for a moment, so that every node has it.
func warm(t *testing.T, reference string) {
	t.Helper()
	s := newScenario(t, unlabelled)
	s.install(agent(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.Containers[0].Image = reference }))
	s.kubectl("", "delete", agents, "--cascade=foreground", "--timeout="+patience.String())
}

// updateTo updates a DaemonSet to an image.
func updateTo(t *testing.T, labels map[string]string, reference string) []figure {
	t.Helper()
	s := newScenario(t, asShipped(labels))
	s.install(agent(templated(realistic)))
	from := time.Now()
	s.kubectl("", "set", "image", agents, "app="+reference)
	s.completes(agents)
	took, happened := time.Since(from).Seconds(), s.since(from)
	missed := notReady(happened)
	return []figure{
		{"seconds until it is over", took},
		{"seconds a pod is not Ready, p50", quantile(missed, 0.5)},
		{"seconds a pod is not Ready, max", quantile(missed, 1)},
		{"pods created", births(happened)},
	}
}

// pushCold pushes the test application to the registry with a layer that no node has, and returns its tag. The layer differs in some bytes
// after the end of the binary, which nothing reads.
func pushCold(t *testing.T) string {
	t.Helper()
	binary, err := os.ReadFile(filepath.Join(binaries, "images", "app"))
	if err != nil {
		t.Fatal(err)
	}
	file, tag := filepath.Join(t.TempDir(), "app"), "cold-"+strings.ToLower(rand.Text()[:12])
	if err := os.WriteFile(file, append(binary, rand.Text()...), 0o600); err != nil {
		t.Fatal(err)
	}
	push := exec.CommandContext(t.Context(), filepath.Join(binaries, "cluster"), "push", "app:"+tag, file)
	if output, err := push.CombinedOutput(); err != nil {
		t.Fatalf("cluster push: %v: %s", err, output)
	}
	return tag
}

// slowRegistry serves the registry at another address, where a layer takes coldPull. containerd uses plain HTTP for loopback addresses
// without a hosts.toml (core/remotes/docker/config/hosts.go, ConfigureHosts).
func slowRegistry(t *testing.T) (host string) {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: strings.TrimSuffix(registry, "/")})
	proxy.ModifyResponse = func(response *http.Response) error {
		layer := strings.Contains(response.Request.URL.Path, "/blobs/") && response.ContentLength > 1<<20
		if layer && response.Request.Method == http.MethodGet {
			response.Body = &throttled{ReadCloser: response.Body, size: response.ContentLength, started: time.Now()}
		}
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// throttled is a reader that takes coldPull for all of its content.
type throttled struct {
	io.ReadCloser
	size, read int64
	started    time.Time
}

func (t *throttled) Read(into []byte) (int, error) {
	n, err := t.ReadCloser.Read(into)
	t.read += int64(n)
	due := time.Duration(float64(coldPull) * float64(t.read) / float64(t.size))
	time.Sleep(time.Until(t.started.Add(due)))
	return n, err
}
