package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/stayput/stayput/e2e/cluster/internal/process"
)

// state describes a cluster. Zero values stand for fields that the user did not ask for.
type state struct {
	Version        string `json:"version"`
	Nodes          int    `json:"nodes"`
	SimulatedNodes int    `json:"simulatedNodes"`
	// Complete is true once the cluster has been ready for use.
	Complete bool `json:"complete"`
}

const defaultNodes = 3

func (l *launcher) stateFile() string    { return l.dir.Run("cluster") }
func (l *launcher) snapshotFile() string { return l.dir.Run("machine") }

// recorded returns the state of the cluster that is up, at least in part, and false if there is none.
func (l *launcher) recorded() (state, bool, error) {
	var current state
	err := readJSON(l.stateFile(), &current)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, false, nil
	}
	return current, err == nil, err
}

// merge returns the cluster to have: the wanted values, and for the others those of the present cluster, or the defaults. A cluster can
// grow, but nothing else about it can change.
func (l *launcher) merge(wanted state) (state, error) {
	current, exists, err := l.recorded()
	if err != nil {
		return state{}, err
	}
	if !exists {
		return l.withDefaults(wanted)
	}
	if wanted.Version != "" && wanted.Version != current.Version {
		return state{}, fmt.Errorf("the cluster that is up is Kubernetes %s, not %s: run make cluster-down first", current.Version,
			wanted.Version)
	}
	merged := current
	if merged.Nodes, err = grow("nodes", current.Nodes, wanted.Nodes); err != nil {
		return state{}, err
	}
	if merged.SimulatedNodes, err = grow("simulated nodes", current.SimulatedNodes, wanted.SimulatedNodes); err != nil {
		return state{}, err
	}
	merged.Complete = current == merged && current.Complete
	return merged, nil
}

func grow(what string, current, wanted int) (int, error) {
	if wanted != 0 && wanted < current {
		return 0, fmt.Errorf("the cluster that is up has %d %s, not %d: run make cluster-down first", current, what, wanted)
	}
	return max(current, wanted), nil
}

func (l *launcher) withDefaults(wanted state) (state, error) {
	if wanted.Nodes == 0 {
		wanted.Nodes = defaultNodes
	}
	var err error
	if wanted.Version == "" {
		wanted.Version, err = l.chosenVersion()
	}
	return wanted, err
}

// These are the parts of the names of Kubernetes' binary and kubectl's before the version.
const (
	prefix  = "kubernetes-"
	kubectl = "kubectl-"
)

// chosenVersion returns the version that the build has linked, else the newest one that was built.
func (l *launcher) chosenVersion() (string, error) {
	if target, err := os.Readlink(l.dir.Bin("kubernetes")); err == nil {
		return strings.TrimPrefix(filepath.Base(target), prefix), nil
	}
	files, err := filepath.Glob(l.dir.Bin(prefix + "v*"))
	if err != nil {
		return "", err
	}
	newest := ""
	for _, file := range files {
		candidate := strings.TrimPrefix(filepath.Base(file), prefix)
		parsed, err := version.ParseSemantic(candidate)
		if err != nil {
			continue // not a release, for example an unfinished build
		}
		if newest == "" || version.MustParseSemantic(newest).LessThan(parsed) {
			newest = candidate
		}
	}
	if newest == "" {
		return "", fmt.Errorf("there is no %s: run make cluster, which builds it", l.dir.Bin(prefix+"vVERSION"))
	}
	return newest, nil
}

// process returns the recorded process of the component name, or a zero Process.
func (l *launcher) process(name string) (process.Process, error) {
	var recorded process.Process
	err := readJSON(l.processFile(name), &recorded)
	if errors.Is(err, fs.ErrNotExist) {
		return process.Process{}, nil
	}
	return recorded, err
}

func (l *launcher) processFile(name string) string { return l.dir.Run(name + ".json") }

// processes returns all recorded processes by name.
func (l *launcher) processes() (map[string]process.Process, error) {
	files, err := filepath.Glob(l.processFile("*"))
	if err != nil {
		return nil, err
	}
	all := map[string]process.Process{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if all[name], err = l.process(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func readJSON(file string, into any) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// writeJSON replaces a file atomically, even if the launcher is interrupted.
func writeJSON(file string, content any) error {
	encoded, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", append(encoded, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
