package lifecycle

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stayput/stayput/e2e/cluster/internal/layout"
	"github.com/stayput/stayput/e2e/cluster/internal/process"
)

var (
	dir      = ownDir()
	launcher = dir.Bin("cluster")
)

func ownDir() layout.Dir {
	path, err := filepath.Abs("../../../.cluster")
	if err != nil {
		panic(err)
	}
	return layout.Dir(path)
}

// machine describes everything that a cluster changes outside its directory, and its transient files: one line for each, sorted.
func machine(t *testing.T) string {
	t.Helper()
	var lines []string
	for _, look := range []func() ([]string, error){interfaces, routes, tables, mounts, processes, cgroups, sysctls, directories} {
		found, err := look()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, found...)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// difference returns the added and the missing lines.
func difference(before, after string) string {
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	var lines []string
	for _, line := range is {
		if !slices.Contains(was, line) {
			lines = append(lines, "+ "+line)
		}
	}
	for _, line := range was {
		if !slices.Contains(is, line) {
			lines = append(lines, "- "+line)
		}
	}
	return strings.Join(lines, "\n")
}

func interfaces() ([]string, error) {
	all, err := net.Interfaces()
	var lines []string
	for _, each := range all {
		addresses, err := each.Addrs()
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("interface %s %v", each.Name, addresses))
	}
	return lines, err
}

func routes() ([]string, error) { return output("route", "ip", "route", "show", "table", "all") }

func tables() ([]string, error) {
	if _, err := exec.LookPath("nft"); err != nil {
		return nil, nil // up installs it; there are no rules without it
	}
	return output("nftables", "nft", "list", "tables")
}

func mounts() ([]string, error) {
	content, err := os.ReadFile("/proc/self/mountinfo")
	var lines []string
	for line := range strings.Lines(string(content)) {
		lines = append(lines, "mount "+strings.Fields(line)[4])
	}
	return lines, err
}

// processes returns those that run the cluster's binaries, except users' kubectl, or are in one of its cgroups: containers. A zombie holds
// no resources. The machine's init decides when it vanishes.
func processes() ([]string, error) {
	pids, err := process.All()
	var lines []string
	for _, pid := range pids {
		each, err := process.Of(pid)
		if err != nil || !each.Alive() || process.Name(pid) == "kubectl" {
			continue
		}
		executable, _ := process.Executable(pid)
		cgroup, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if strings.HasPrefix(executable, dir.Bin()) || strings.Contains(string(cgroup), ":/stayput") {
			lines = append(lines, fmt.Sprintf("process %d %v", pid, process.Arguments(pid)))
		}
	}
	return lines, err
}

func cgroups() ([]string, error) {
	var lines []string
	for _, pattern := range []string{"/sys/fs/cgroup/stayput", "/sys/fs/cgroup/*/stayput"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		lines = append(lines, found...)
	}
	return lines, nil
}

func sysctls() ([]string, error) {
	var lines []string
	for _, name := range []string{"net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet", "net/ipv4/conf/default/forwarding",
		"fs/inotify/max_user_instances", "fs/inotify/max_user_watches", "vm/overcommit_memory", "vm/panic_on_oom",
		"kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys"} {
		value, err := os.ReadFile("/proc/sys/" + name)
		if err != nil {
			return nil, err
		}
		lines = append(lines, "sysctl "+name+" "+strings.TrimSpace(string(value)))
	}
	return lines, nil
}

// directories returns the files outside .cluster that kubelet, containerd and CNI write, and .cluster itself.
func directories() ([]string, error) {
	var lines []string
	for _, pattern := range []string{"/var/lib/*", "/var/log/*", "/run/*", "/etc/*", "/opt/*", "/usr/libexec/*", string(dir) + "/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		lines = append(lines, found...)
	}
	return lines, nil
}

func output(kind string, command ...string) ([]string, error) {
	content, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%v: %w: %s", command, err, content)
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		lines = append(lines, kind+" "+strings.TrimSpace(line))
	}
	return lines, nil
}

// recorded returns the process of a component; a zero Process if none was started.
func recorded(t *testing.T, name string) process.Process {
	t.Helper()
	content, err := os.ReadFile(dir.Run(name + ".json"))
	if os.IsNotExist(err) {
		return process.Process{}
	}
	var found process.Process
	if err == nil {
		err = json.Unmarshal(content, &found)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}
