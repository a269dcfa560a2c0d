package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/stayput/stayput/e2e/cluster/internal/machine"
	"github.com/stayput/stayput/e2e/cluster/internal/process"
)

// downPatience is the time for killed processes to end.
const downPatience = time.Minute

// down ends the cluster and removes all its traces, except what was built. It kills at once, because nothing is kept. It continues after a
// failure, to remove as much as possible.
func (l *launcher) down(ctx context.Context, _ []string) error {
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if os.Geteuid() != 0 {
		return errors.New("taking the cluster down needs root: run this again with sudo")
	}
	ctx, cancel := context.WithTimeout(ctx, downPatience)
	defer cancel()
	failure := errors.Join(l.killAll(ctx), machine.Unmount(string(l.dir)), l.restoreMachine())
	if failure != nil {
		return failure // the records stay for another attempt
	}
	for _, path := range l.dir.Transient() {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	l.progress("no cluster is up")
	return nil
}

// killAll kills the components, other processes of the cluster's binaries, and all containers.
func (l *launcher) killAll(ctx context.Context) error {
	doomed, err := l.remnants()
	if err != nil {
		return err
	}
	var failures []error
	for _, each := range doomed {
		failures = append(failures, each.Signal(syscall.SIGKILL))
	}
	if l.machineChanged() {
		failures = append(failures, machine.TearDownCgroups(ctx))
	}
	for _, each := range doomed {
		failures = append(failures, each.WaitGone(ctx))
	}
	return errors.Join(failures...)
}

// remnants returns the processes that run one of the cluster's binaries: components, recorded or not, and shims, which are never recorded.
func (l *launcher) remnants() ([]process.Process, error) {
	pids, err := process.All()
	if err != nil {
		return nil, err
	}
	var found []process.Process
	for _, pid := range pids {
		if !l.isRemnant(pid) || l.isUsers(pid) {
			continue
		}
		if each, err := process.Of(pid); err == nil { // otherwise it has ended meanwhile
			found = append(found, each)
		}
	}
	return found, nil
}

// isUsers reports whether a user started pid: kubectl, or a launcher, which is this one or waits for the lock. The registry runs this
// binary, too.
func (l *launcher) isUsers(pid int) bool {
	arguments := process.Arguments(pid)
	switch process.Name(pid) {
	case "kubectl":
		return true
	case "cluster":
		return len(arguments) < 2 || arguments[1] != "registry"
	}
	return false
}

// isRemnant reports whether pid runs one of the cluster's binaries.
func (l *launcher) isRemnant(pid int) bool {
	executable, err := process.Executable(pid)
	return err == nil && strings.HasPrefix(executable, l.dir.Bin()+"/")
}

// restoreMachine undoes what prepare did to the machine.
func (l *launcher) restoreMachine() error {
	if !l.machineChanged() {
		return nil
	}
	if err := errors.Join(machine.TearDownNetwork(), machine.Restore(l.snapshotFile())); err != nil {
		return fmt.Errorf("restore the machine: %w", err)
	}
	return nil
}

// machineChanged reports whether there was a cluster. Otherwise bridges and cgroups of these names may be those of a cluster in another
// directory.
func (l *launcher) machineChanged() bool {
	_, err := os.Stat(l.snapshotFile())
	return err == nil
}
