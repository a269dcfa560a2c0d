//go:build e2e && bench

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// idleFor is how long the cluster is left alone before each round, to measure what it uses without an update.
	idleFor = 10 * time.Second
	// billedAfter is how long the components still work for an update that is over: sandboxes are removed, for example.
	billedAfter = 2 * time.Second
)

// componentOf names what a process of the test cluster is counted as, by its executable.
var componentOf = map[string]string{
	"etcd": "etcd", "kube-apiserver": "kube-apiserver", "kube-controller-manager": "kube-controller-manager",
	"kube-scheduler": "kube-scheduler", "kube-proxy": "kube-proxy",
	"kubelet": "kubelets", "containerd": "kubelets", "containerd-shim-runc-v2": "kubelets",
}

// ownManagers are Stayput's, which report their processor time themselves.
const ownManagers = "managers"

// bill is what the cluster has used: processor time by component, in seconds, bytes that etcd has written, and requests to the API server.
type bill struct {
	cpu             map[string]float64
	bytes, requests float64
	seconds         float64 // the length of the interval
}

// meter reads what the components use. Each component has a cgroup of its own, so that children are counted that have ended, such as runc.
type meter struct {
	groups map[string]string // cgroup by component
	etcd   int               // its process
	idle   []bill
}

// newMeter moves the components into cgroups, and moves them back when the test ends. The containers of pods have other cgroups.
func newMeter(t *testing.T) *meter {
	t.Helper()
	root := "/sys/fs/cgroup/cpuacct"
	if _, err := os.Stat(root); err != nil {
		root = "/sys/fs/cgroup"
	}
	m := &meter{groups: map[string]string{}}
	t.Cleanup(func() { m.disband(t, root) })
	for name, pids := range processesOfCluster(t) {
		m.groups[name] = filepath.Join(root, "stayput-bench-"+name)
		if err := os.Mkdir(m.groups[name], 0o755); err != nil && !os.IsExist(err) {
			t.Fatalf("a cgroup for %s: %v", name, err)
		}
		if name == "etcd" {
			m.etcd = pids[0]
		}
		for _, pid := range pids {
			move(t, pid, m.groups[name])
		}
	}
	return m
}

func move(t *testing.T, pid int, group string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, pid), 0o644); err != nil && !os.IsNotExist(err) {
		t.Logf("process %d is not in %s: %v", pid, group, err) // it has ended meanwhile
	}
}

// disband moves all processes back, until no new ones have come meanwhile, and removes the cgroups.
func (m *meter) disband(t *testing.T, root string) {
	for _, group := range m.groups {
		err := pollFor(context.Background(), patience, func(context.Context) error {
			inside, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
			if err != nil {
				return err
			}
			for _, pid := range strings.Fields(string(inside)) {
				move(t, int(number(pid)), root)
			}
			return os.Remove(group)
		})
		if err != nil {
			t.Errorf("the cgroup %s is left: %v", group, err)
		}
	}
}

// processesOfCluster returns the processes of each component.
func processesOfCluster(t *testing.T) map[string][]int {
	t.Helper()
	folder, err := filepath.EvalSymlinks(binaries)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]int{}
	for _, line := range lines {
		content, _ := os.ReadFile(line)
		program, _, _ := strings.Cut(string(content), "\x00")
		if name := componentOf[filepath.Base(program)]; name != "" && filepath.Dir(program) == folder {
			found[name] = append(found[name], int(number(filepath.Base(filepath.Dir(line)))))
		}
	}
	for _, name := range componentOf {
		if len(found[name]) == 0 {
			t.Fatalf("no process of %s runs %s", name, folder)
		}
	}
	return found
}

// over measures what the cluster uses while something happens. Reading metrics costs the API server more than a small update does, so they
// are read outside of the interval.
func (m *meter) over(ctx context.Context, happens func()) (bill, error) {
	requests, err := allRequests(ctx)
	if err != nil {
		return bill{}, err
	}
	managers := managersUse(ctx).cpu
	before, from := m.read(), time.Now()
	happens()
	used := m.read().since(before)
	used.seconds = time.Since(from).Seconds()
	used.cpu[ownManagers] = managersUse(ctx).cpu - managers
	after, err := allRequests(ctx)
	used.requests = after - requests
	return used, err
}

// payBy has a meter measure the updates of all sides.
func payBy(m *meter, sides []*side) {
	for _, s := range sides {
		s.meter = m
	}
}

// idle returns the counters before a round. It measures what the idle cluster uses if that is asked for.
func (s *side) idle() counters {
	s.Helper()
	if s.meter != nil {
		used, err := s.meter.over(s.Context(), func() { time.Sleep(idleFor) })
		if err != nil {
			s.Fatal(err)
		}
		s.meter.idle = append(s.meter.idle, used)
	}
	now, _ := s.count()
	return now
}

func (m *meter) read() bill {
	now := bill{cpu: map[string]float64{}, bytes: readNumber(fmt.Sprintf("/proc/%d/io", m.etcd), writtenBytes)}
	for name, group := range m.groups {
		now.cpu[name] = secondsOf(group)
	}
	return now
}

var (
	writtenBytes = regexp.MustCompile(`(?m)^write_bytes: (\d+)$`)
	nanoseconds  = regexp.MustCompile(`^(\d+)`)
	microseconds = regexp.MustCompile(`(?m)^usage_usec (\d+)$`)
)

// secondsOf returns the processor time of a cgroup of version 1 or 2.
func secondsOf(group string) float64 {
	if used := readNumber(filepath.Join(group, "cpuacct.usage"), nanoseconds); measured(used) {
		return used / 1e9
	}
	return readNumber(filepath.Join(group, "cpu.stat"), microseconds) / 1e6
}

// readNumber returns NaN if the file does not have it.
func readNumber(path string, expression *regexp.Regexp) float64 {
	if text := firstIn(path, expression); text != "" {
		return number(text)
	}
	return math.NaN()
}

// allRequests returns the number of requests to the API server's resources so far, watches included.
func allRequests(ctx context.Context) (float64, error) {
	server, err := serverMetrics(ctx)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for _, series := range server["apiserver_request_total"].GetMetric() {
		if labelOf(series, "resource") != "" {
			total += amount(series)
		}
	}
	return total, nil
}

func (b bill) since(before bill) bill { return b.plus(before, -1) }

// plus adds so many times another bill.
func (b bill) plus(other bill, times float64) bill {
	all := bill{cpu: maps.Clone(b.cpu), bytes: b.bytes + times*other.bytes, requests: b.requests + times*other.requests}
	if all.cpu == nil {
		all.cpu = map[string]float64{}
	}
	for name, seconds := range other.cpu {
		all.cpu[name] += times * seconds
	}
	all.seconds = b.seconds + times*other.seconds
	return all
}

// net subtracts what an idle cluster uses in as long a time.
func (m *meter) net(b bill) bill {
	var idle bill
	for _, each := range m.idle {
		idle = idle.plus(each, 1)
	}
	return b.plus(idle, -b.seconds/idle.seconds)
}

// billFigures returns the cost of each pod, in the median of all updates.
func (s *side) billFigures() []figure {
	if s.meter == nil || len(s.costs) == 0 {
		return nil
	}
	var bills []bill
	for _, c := range s.costs {
		bills = append(bills, s.meter.net(c.bill))
	}
	median := func(of func(bill) float64) float64 { return quantile(each(bills, of), 0.5) / s.pods }
	figures := []figure{{"milliseconds of the cluster's CPU per pod", 1000 * median(func(b bill) float64 {
		return sum(slices.Collect(maps.Values(b.cpu)))
	})}}
	for _, name := range slices.Sorted(maps.Keys(bills[0].cpu)) {
		figures = append(figures, figure{"milliseconds of CPU per pod: " + name, 1000 * median(func(b bill) float64 { return b.cpu[name] })})
	}
	return append(figures,
		figure{"KiB that etcd writes per pod", median(func(b bill) float64 { return b.bytes }) / (1 << 10)},
		figure{"API requests per pod", median(func(b bill) float64 { return b.requests })})
}
