//go:build e2e && bench

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// result is the measurement of one bench. figures.json has it under the bench's name.
type result struct {
	Measured   string      `json:"measured"` // when
	Commit     string      `json:"commit"`
	Product    string      `json:"product"`   // a hash of the product's sources: commits that change nothing else do not change it
	Simulator  string      `json:"simulator"` // a hash of kwok and its stages; empty on a cluster without kwok
	Kubernetes string      `json:"kubernetes"`
	Machine    string      `json:"machine"`
	Ways       []resultWay `json:"ways"`
}

// resultWay is one column of the result.
type resultWay struct {
	Name    string        `json:"name"`
	Figures []namedFigure `json:"figures"`
	Updated []float64     `json:"updated,omitempty"` // when each pod was updated, in seconds
	Steps   []float64     `json:"steps,omitempty"`   // of each pod, without drain, in seconds
}

type namedFigure struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
}

// keepResult writes the measurement to the file of all figures. The figures of other benches stay.
func keepResult(name string, all []column) error {
	folder := os.Getenv("BENCH_OUTPUT")
	if folder == "" {
		return nil
	}
	path, results := filepath.Join(folder, "figures.json"), map[string]result{}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &results)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	results[name] = resultOf(all)
	if text, err = json.MarshalIndent(results, "", "\t"); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func resultOf(all []column) result {
	r := result{Measured: time.Now().UTC().Format(time.RFC3339), Kubernetes: release(), Machine: machine()}
	r.Commit, r.Product = sources()
	r.Simulator = simulator()
	for _, c := range all {
		w := resultWay{Name: c.name, Updated: rounded(c.updated), Steps: rounded(c.steps)}
		for _, f := range c.figures {
			if measured(f.value) {
				w.Figures = append(w.Figures, namedFigure{f.what, thousandths(f.value)})
			}
		}
		r.Ways = append(r.Ways, w)
	}
	return r
}

func rounded(values []float64) []float64 {
	short := make([]float64, len(values))
	for i, value := range values {
		short[i] = thousandths(value)
	}
	return short
}

func thousandths(value float64) float64 { return math.Round(value*1000) / 1000 }

// productFiles are the managers' sources, and what is installed with them, as git names them.
var productFiles = []string{"cmd/stayput", "controller", "inplace", "internal", "manifests", "webhook", "go.mod",
	":!*_test.go", ":!inplace/simulation", ":!manifests/cel"}

// sources returns the measured commit, and a hash of the product in it. The commit is dirty if the product has changed since, but not if a
// bench has changed the pages of figures. Both are "unknown" without git.
func sources() (commit, product string) {
	git := func(arguments ...string) (string, error) {
		output, err := exec.Command("git", append([]string{"-C", repository}, arguments...)...).Output()
		return strings.TrimSpace(string(output)), err
	}
	commit, err := git("rev-parse", "--short", "HEAD")
	files, filesErr := git(append([]string{"ls-files", "--stage", "--"}, productFiles...)...)
	changes, changesErr := git(append([]string{"diff", "HEAD", "--"}, productFiles...)...)
	if errors.Join(err, filesErr, changesErr) != nil {
		return "unknown", "unknown"
	}
	if changes != "" {
		commit += "-dirty"
	}
	return commit, digest([]byte(files + changes))
}

// simulator returns a hash of what plays the simulated pods.
func simulator() string {
	kwok, err := os.ReadFile(filepath.Join(binaries, "kwok"))
	stages, stagesErr := os.ReadFile(filepath.Join(repository, "e2e", "cluster", "simulated", "stages.yaml"))
	if errors.Join(err, stagesErr) != nil {
		return ""
	}
	return digest(append(kwok, stages...))
}

func digest(content []byte) string {
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:6])
}

// release returns the Kubernetes version of the cluster.
func release() string {
	version, err := clients.Discovery().ServerVersion()
	if err != nil {
		return "unknown"
	}
	return version.GitVersion
}

var (
	processorModel = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)
	memoryTotal    = regexp.MustCompile(`(?m)^MemTotal:\s*(\d+) kB$`)
)

// machine describes the machine of the test. The cluster's nodes are on the same machine.
func machine() string {
	text := fmt.Sprintf("%d processors", runtime.NumCPU())
	if model := firstIn("/proc/cpuinfo", processorModel); model != "" {
		text += " (" + model + ")"
	}
	if memory := firstIn("/proc/meminfo", memoryTotal); memory != "" {
		text += fmt.Sprintf(", %.0f GiB", number(memory)/(1<<20))
	}
	return text
}

func firstIn(path string, expression *regexp.Regexp) string {
	text, err := os.ReadFile(path)
	if found := expression.FindSubmatch(text); err == nil && found != nil {
		return string(found[1])
	}
	return ""
}
