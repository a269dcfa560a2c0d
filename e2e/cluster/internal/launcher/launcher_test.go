package launcher

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stayput/stayput/e2e/cluster/internal/addon"
	"github.com/stayput/stayput/e2e/cluster/internal/component"
	"github.com/stayput/stayput/e2e/cluster/internal/layout"
)

func TestStepsRunAfterThoseTheyNeed(t *testing.T) {
	var mutex sync.Mutex
	var order []string
	record := func(name string) func(context.Context) error {
		return func(context.Context) error {
			mutex.Lock()
			defer mutex.Unlock()
			order = append(order, name)
			return nil
		}
	}
	steps := []step{
		{"last", []string{"middle", "first"}, record("last")},
		{"middle", []string{"first"}, record("middle")},
		{"first", nil, record("first")},
	}
	if err := runSteps(t.Context(), steps, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); got != "first middle last" {
		t.Errorf("order %q, want first middle last", got)
	}
}

func TestFailedStepEndsTheOthersAndIsNamed(t *testing.T) {
	wrong := errors.New("wrong")
	steps := []step{
		{"failing", nil, func(context.Context) error { return wrong }},
		{"waiting", nil, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		{"later", []string{"failing"}, func(context.Context) error { t.Error("a step runs after a failed one"); return nil }},
	}
	err := runSteps(t.Context(), steps, func(string) {})
	if !errors.Is(err, wrong) || !strings.Contains(err.Error(), "failing") {
		t.Errorf("error %v, want that failing went wrong", err)
	}
}

// A component that waits for a name that no component has would wait for ever.
func TestEveryDependencyExists(t *testing.T) {
	l := newLauncher(t)
	names := map[string]bool{}
	table := component.Table(l.dir, 3, 1)
	for _, each := range table {
		names[each.Name] = true
	}
	cluster := state{Nodes: 3, SimulatedNodes: 1}
	for _, each := range l.objects(addon.Cluster{}, cluster) {
		names[each.name] = true
	}
	for _, each := range table {
		for _, needed := range each.After {
			if !names[needed] {
				t.Errorf("%s comes after %s, which does not exist", each.Name, needed)
			}
		}
	}
}

func TestNoTwoComponentsListenAtTheSameAddress(t *testing.T) {
	holders := map[string]string{}
	for _, each := range component.Table(newLauncher(t).dir, 3, 1) {
		for _, address := range each.Listens {
			if other, taken := holders[address.String()]; taken {
				t.Errorf("%s and %s listen at %s", other, each.Name, address)
			}
			holders[address.String()] = each.Name
		}
	}
}

func TestMerge(t *testing.T) {
	up := state{Version: "v1.36.3", Nodes: 3, SimulatedNodes: 10, Complete: true}
	for name, test := range map[string]struct {
		wanted, want state
		refusal      string
	}{
		"nothing asked":        {wanted: state{}, want: up},
		"the same":             {wanted: state{Version: "v1.36.3", Nodes: 3, SimulatedNodes: 10}, want: up},
		"more nodes":           {wanted: state{Nodes: 4}, want: state{Version: "v1.36.3", Nodes: 4, SimulatedNodes: 10}},
		"more simulated nodes": {wanted: state{SimulatedNodes: 11}, want: state{Version: "v1.36.3", Nodes: 3, SimulatedNodes: 11}},
		"another version":      {wanted: state{Version: "v1.35.4"}, refusal: "is Kubernetes v1.36.3, not v1.35.4"},
		"fewer nodes":          {wanted: state{Nodes: 2}, refusal: "has 3 nodes, not 2"},
		"fewer simulated":      {wanted: state{SimulatedNodes: 1}, refusal: "has 10 simulated nodes, not 1"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLauncher(t)
			if err := writeJSON(l.stateFile(), up); err != nil {
				t.Fatal(err)
			}
			got, err := l.merge(test.wanted)
			if test.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), test.refusal) {
					t.Errorf("error %v, want %q", err, test.refusal)
				}
			} else if err != nil || got != test.want {
				t.Errorf("got %+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

func TestFailuresAreTold(t *testing.T) {
	for _, test := range []struct {
		component, line string
		want            bool
	}{
		{"kubelet-node-1", `E1121 19:27:06.1 1 x.go:1] "Something broke"`, true},
		{"kubelet-node-1", `I1121 19:27:06.1 1 x.go:1] "Error is a word"`, false},
		{"kubelet-node-1", `E1121 19:27:06.1 1 kubelet.go:1] "node is not registered yet"`, false},
		{"kube-scheduler", `E1121 19:27:06.1 1 kubelet.go:1] "node is not registered yet"`, true},
		{"containerd-node-1", `time="2026-11-21" level=error msg="broke"`, true},
		{"containerd-node-1", `time="2026-11-21" level=info msg="fine"`, false},
		{"etcd", `{"level":"fatal","msg":"broke"}`, true},
		{"kwok", `{"time":"2026-11-21","level":"ERROR","msg":"broke"}`, true},
		{"kwok", `{"time":"2026-11-21","level":"ERROR","err":"the object has been modified; please try again"}`, false},
		{"coredns", "[ERROR] plugin/errors: broke", true},
		{"cert-manager", "panic: runtime error", true},
	} {
		if got := isFailure(test.component, test.line); got != test.want {
			t.Errorf("%s: %s: failure %v, want %v", test.component, test.line, got, test.want)
		}
	}
}

func TestSecondLauncherWaitsForTheFirst(t *testing.T) {
	first := newLauncher(t)
	unlock, err := first.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second := &launcher{dir: first.dir, out: io.Discard, began: time.Now()}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := second.lock(interrupted); err == nil {
		t.Error("two launchers hold the lock")
	}
	unlock()
	unlockSecond, err := second.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unlockSecond()
}

func newLauncher(t *testing.T) *launcher {
	t.Helper()
	return &launcher{dir: layout.Dir(t.TempDir()), out: io.Discard, began: time.Now()}
}
