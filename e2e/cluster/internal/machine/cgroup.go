package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stayput/stayput/e2e/cluster/internal/plan"
)

// SetUpCgroups makes the parent cgroup of each node's pods in every hierarchy; the kubelet needs it.
func SetUpCgroups(nodes int) error {
	hierarchies, err := hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		for _, node := range plan.Nodes(nodes) {
			if err := makeCgroup(hierarchy, node.Cgroup()); err != nil {
				return err
			}
			if err := weigh(filepath.Join(hierarchy, node.Cgroup()), runtime.NumCPU()); err != nil {
				return err
			}
		}
		if err := weigh(filepath.Join(hierarchy, plan.CgroupRoot), nodes*runtime.NumCPU()); err != nil {
			return err
		}
	}
	return nil
}

// weigh gives a cgroup the weight of so many CPUs. A kubelet gives its kubepods as much (MilliCPUToShares in
// pkg/kubelet/cm/helpers_linux.go), but that counts only beside what is in the same parent: on a node that is the root.
func weigh(cgroup string, cpus int) error {
	shares := 1024 * cpus
	for file, value := range map[string]int{
		"cpu.shares": shares,                     // version 1
		"cpu.weight": 1 + (shares-2)*9999/262142, // version 2
	} {
		path := filepath.Join(cgroup, file)
		if _, err := os.Stat(path); err != nil {
			continue // another hierarchy
		}
		if err := os.WriteFile(path, []byte(strconv.Itoa(value)), 0); err != nil {
			return fmt.Errorf("cgroup %s: %w", cgroup, err)
		}
	}
	return nil
}

// makeCgroup makes path below root, parents first, each with what its children need.
func makeCgroup(root, path string) error {
	current := root
	for _, part := range strings.Split(strings.Trim(path, "/"), "/") {
		if err := delegateControllers(current); err != nil {
			return err
		}
		parent := current
		current = filepath.Join(current, part)
		if err := os.Mkdir(current, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cgroup %s: %w", current, err)
		}
		if err := inheritCPUs(parent, current); err != nil {
			return err
		}
	}
	return nil
}

// delegateControllers enables all controllers for the children of a version 2 cgroup.
func delegateControllers(cgroup string) error {
	controllers, err := os.ReadFile(filepath.Join(cgroup, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) || len(strings.Fields(string(controllers))) == 0 {
		return nil // version 1, or a version 2 hierarchy without controllers beside it
	}
	if err != nil {
		return err
	}
	enable := "+" + strings.Join(strings.Fields(string(controllers)), " +")
	if err := os.WriteFile(filepath.Join(cgroup, "cgroup.subtree_control"), []byte(enable), 0); err != nil {
		return fmt.Errorf("the cgroup %s does not pass its controllers on: run the cluster where you have the root cgroup to yourself: %w",
			cgroup, err)
	}
	return nil
}

// inheritCPUs copies empty values of a new cgroup of the version 1 hierarchy cpuset from its parent. No process can run in it before.
func inheritCPUs(parent, child string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		inherited, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another hierarchy, or version 2's root
		}
		if err != nil {
			return err
		}
		own, err := os.ReadFile(filepath.Join(child, file))
		if err != nil || strings.TrimSpace(string(own)) != "" {
			return err
		}
		if err := os.WriteFile(filepath.Join(child, file), inherited, 0); err != nil {
			return fmt.Errorf("cgroup %s: %w", child, err)
		}
	}
	return nil
}

// TearDownCgroups kills all processes in the nodes' cgroups and removes the cgroups, until ctx ends.
func TearDownCgroups(ctx context.Context) error {
	hierarchies, err := hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		if err := removeCgroup(ctx, filepath.Join(hierarchy, plan.CgroupRoot)); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroup kills and retries until nothing is left: a process can fork before it is killed, and a cgroup is busy until its last process
// has ended.
func removeCgroup(ctx context.Context, root string) error {
	for {
		cgroups, err := subtree(root)
		if err != nil || len(cgroups) == 0 {
			return err
		}
		err = killAndRemove(cgroups)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cgroup %s does not end: %w", root, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func killAndRemove(cgroups []string) error {
	for _, cgroup := range cgroups {
		for _, pid := range pids(cgroup) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill process %d of cgroup %s: %w", pid, cgroup, err)
			}
		}
	}
	for _, cgroup := range slices.Backward(cgroups) {
		if err := os.Remove(cgroup); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// subtree returns root and all cgroups below it, parents first; none if there is no root.
func subtree(root string) ([]string, error) {
	var cgroups []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err == nil && entry.IsDir() {
			cgroups = append(cgroups, path)
		}
		return err
	})
	return cgroups, err
}

// pids returns the processes in cgroup itself; none if it was removed meanwhile.
func pids(cgroup string) []int {
	content, err := os.ReadFile(filepath.Join(cgroup, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var found []int
	for _, line := range strings.Fields(string(content)) {
		if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
			found = append(found, pid)
		}
	}
	return found
}

// hierarchies returns the mount points of all cgroup file systems: one with version 2, one for each controller with version 1.
func hierarchies() ([]string, error) {
	mounts, err := mounts()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, mount := range mounts {
		if mount.fileSystem == "cgroup" || mount.fileSystem == "cgroup2" {
			found = append(found, mount.path)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no cgroup file system is mounted: mount cgroup2 at /sys/fs/cgroup")
	}
	return found, nil
}
