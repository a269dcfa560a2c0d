package launcher

import (
	"context"
	"fmt"
	"net/netip"
	"os"

	"github.com/stayput/stayput/e2e/cluster/internal/component"
	"github.com/stayput/stayput/e2e/cluster/internal/machine"
	"github.com/stayput/stayput/e2e/cluster/internal/process"
)

// check returns an error with one sentence if the cluster cannot start. It runs before any change of the machine.
func (l *launcher) check(ctx context.Context, cluster state, table []component.Component) error {
	for _, file := range l.built(cluster, table) {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%s is missing: run make cluster, which builds it", file)
		}
	}
	if err := machine.Require(ctx, l.progress); err != nil {
		return err
	}
	if err := l.adopt(table); err != nil {
		return err
	}
	return l.checkPorts(ctx, table)
}

// built returns the files that the build has to have made. The names of Kubernetes' binaries are links that are made later.
func (l *launcher) built(cluster state, table []component.Component) []string {
	files := []string{
		l.dir.Bin(prefix + cluster.Version), l.dir.Bin(kubectl + cluster.Version), l.dir.Bin("runc"), l.dir.Bin("containerd-shim-runc-v2"),
		l.dir.Bin("cni", "bridge"), l.dir.Bin("cni", "host-local"), l.dir.Bin("cni", "loopback"), l.dir.Bin("cni", "portmap"),
		l.dir.Bin("images", "app"), l.dir.Bin("images", "pause"), l.dir.Share("cert-manager"),
	}
	if cluster.SimulatedNodes > 0 {
		files = append(files, l.dir.Share("simulated", "stages.yaml"), l.dir.Share("simulated", "node.yaml"))
	}
	for _, each := range table {
		if !each.OfKubernetes() {
			files = append(files, each.Argv[0])
		}
	}
	return files
}

// checkPorts returns an error with the process that listens on a component's address, if there is one.
func (l *launcher) checkPorts(ctx context.Context, table []component.Component) error {
	own, err := l.ownPIDs(ctx)
	if err != nil {
		return err
	}
	listeners, err := process.Listeners()
	if err != nil {
		return err
	}
	for _, each := range table {
		for _, address := range each.Listens {
			if err := l.checkPort(each.Name, address, listeners, own); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownPIDs returns the recorded processes that are alive. It waits for those that are about to end.
func (l *launcher) ownPIDs(ctx context.Context) (map[int]bool, error) {
	recorded, err := l.processes()
	if err != nil {
		return nil, err
	}
	own := map[int]bool{}
	for _, each := range recorded {
		if each.Alive() {
			own[each.PID] = true
		} else if err := each.WaitGone(ctx); err != nil {
			return nil, err
		}
	}
	return own, nil
}

func (l *launcher) checkPort(name string, address netip.AddrPort, listeners []process.Listener, own map[int]bool) error {
	for _, listener := range listeners {
		if !listener.Blocks(address) {
			continue
		}
		pid, found := listener.Holder()
		switch {
		case !found:
			return fmt.Errorf("port %d, which %s needs, is taken by a process that cannot be seen from here: stop it first", address.Port(), name)
		case !own[pid]:
			return fmt.Errorf("port %d, which %s needs, is taken by %s (process %d): stop it first", address.Port(), name, process.Name(pid), pid)
		}
	}
	return nil
}
