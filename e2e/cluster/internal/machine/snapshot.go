package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// wanted are the sysctls that the cluster sets.
var wanted = map[string]string{
	"net.ipv4.ip_forward":                "1",
	"net.bridge.bridge-nf-call-iptables": "1",    // Services between pods of one bridge
	"fs.inotify.max_user_instances":      "8192", // several kubelets and kubectl watch more files than one machine's default allows
	"fs.inotify.max_user_watches":        "524288",
}

// changed are the sysctls that components set: pkg/kubelet/cm/container_manager_linux.go.
var changed = []string{
	"vm.overcommit_memory", "vm.panic_on_oom", "kernel.panic", "kernel.panic_on_oops",
	"kernel.keys.root_maxkeys", "kernel.keys.root_maxbytes",
}

// strays are directories outside the cluster's own whose paths are fixed in the code of kubelet, containerd and CNI: device plugins, links
// to container logs, sockets of shims, results of CNI plugins.
var strays = []string{"/var/lib/kubelet", "/var/log/containers", "/run/containerd", "/var/lib/cni"}

// Snapshot is the state of the machine before the cluster.
type Snapshot struct {
	Sysctls map[string]string `json:"sysctls"`
	// Absent are the strays that did not exist.
	Absent []string `json:"absent"`
}

// Remember writes the snapshot to file, unless there is one: then the machine is already changed.
func Remember(file string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	snapshot, err := take()
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(snapshot, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", content, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func take() (Snapshot, error) {
	snapshot := Snapshot{Sysctls: map[string]string{}}
	names := append([]string{}, changed...)
	for name := range wanted {
		names = append(names, name)
	}
	for _, name := range names {
		value, err := os.ReadFile(sysctlPath(name))
		if err != nil {
			return snapshot, fmt.Errorf("sysctl %s: %w", name, err)
		}
		snapshot.Sysctls[name] = strings.TrimSpace(string(value))
	}
	for _, path := range strays {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			snapshot.Absent = append(snapshot.Absent, path)
		}
	}
	return snapshot, nil
}

// SetSysctls sets the sysctls that the cluster needs.
func SetSysctls() error { return write(wanted) }

// Restore brings the machine back to the state in file.
func Restore(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var snapshot Snapshot
	if err := json.Unmarshal(content, &snapshot); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	failures := []error{write(snapshot.Sysctls)}
	for _, path := range snapshot.Absent {
		failures = append(failures, os.RemoveAll(path))
	}
	return errors.Join(failures...)
}

func write(sysctls map[string]string) error {
	var failures []error
	for name, value := range sysctls {
		if err := writeSysctl(name, value); err != nil {
			failures = append(failures, fmt.Errorf("sysctl %s=%s: %w", name, value, err))
		}
	}
	return errors.Join(failures...)
}

// writeSysctl does not write a value that is already right: some are read-only in containers.
func writeSysctl(name, value string) error {
	current, err := os.ReadFile(sysctlPath(name))
	if err != nil || strings.TrimSpace(string(current)) == value {
		return err
	}
	return os.WriteFile(sysctlPath(name), []byte(value), 0)
}

// sysctlPath returns the file of a sysctl. No part of its name may contain a dot.
func sysctlPath(name string) string {
	return filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
}
