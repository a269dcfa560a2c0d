package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/stayput/stayput/e2e/cluster/internal/addon"
	"github.com/stayput/stayput/e2e/cluster/internal/component"
	"github.com/stayput/stayput/e2e/cluster/internal/machine"
	"github.com/stayput/stayput/e2e/cluster/internal/pki"
	"github.com/stayput/stayput/e2e/cluster/internal/plan"
)

// patience is the time for a slow machine to get a cluster ready, including simulated nodes.
const patience = 5 * time.Minute

// up starts the missing components of the wanted cluster, and returns when it is ready for use.
func (l *launcher) up(ctx context.Context, wanted state) error {
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	cluster, err := l.merge(wanted)
	if err != nil {
		return err
	}
	table := component.Table(l.dir, cluster.Nodes, cluster.SimulatedNodes)
	if cluster.Complete && l.healthy(ctx, table) {
		l.progress("the cluster is up already: " + l.summary(cluster))
		return nil
	}
	if err := l.check(ctx, cluster, table); err != nil {
		return err
	}
	if err := l.prepare(cluster); err != nil {
		return err
	}
	if err := l.run(ctx, cluster, table); err != nil {
		return err
	}
	cluster.Complete = true
	if err := writeJSON(l.stateFile(), cluster); err != nil {
		return err
	}
	l.progress("the cluster is up: " + l.summary(cluster))
	return nil
}

func (l *launcher) summary(cluster state) string {
	simulated := ""
	if cluster.SimulatedNodes > 0 {
		simulated = fmt.Sprintf(" and %d simulated", cluster.SimulatedNodes)
	}
	return fmt.Sprintf("Kubernetes %s, %d nodes%s, KUBECONFIG=%s", cluster.Version, cluster.Nodes, simulated, l.dir.Kubeconfig())
}

// prepare changes the machine and makes everything that components need. It takes the snapshot first: with the snapshot down works, at
// whatever point prepare stops.
func (l *launcher) prepare(cluster state) error {
	l.progress("preparing networks, cgroups and certificates")
	for _, directory := range []string{l.dir.Run(), l.dir.Logs()} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return err
		}
	}
	if err := machine.Remember(l.snapshotFile()); err != nil {
		return err
	}
	if err := writeJSON(l.stateFile(), cluster); err != nil {
		return err
	}
	return errors.Join(
		l.link(cluster.Version),
		machine.SetSysctls(),
		machine.SetUpCgroups(cluster.Nodes),
		machine.SetUpNetwork(cluster.Nodes),
		pki.Ensure(l.dir, cluster.Nodes),
	)
}

// link links the names of Kubernetes' binaries to those of the wanted version.
func (l *launcher) link(version string) error {
	links := map[string]string{"kubernetes": prefix + version, "kubectl": kubectl + version}
	for _, name := range component.Kubernetes {
		links[name] = "kubernetes"
	}
	for name, target := range links {
		if current, err := os.Readlink(l.dir.Bin(name)); err == nil && current == target {
			continue
		}
		temporary := l.dir.Bin(name + ".new")
		if err := errors.Join(os.RemoveAll(temporary), os.Symlink(target, temporary), os.Rename(temporary, l.dir.Bin(name))); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
	}
	return nil
}

// run starts the components and creates the objects, each as soon as its requirements are met.
func (l *launcher) run(ctx context.Context, cluster state, table []component.Component) error {
	client, err := addon.Connect(l.dir.Kubeconfig())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not ready after %s", patience))
	defer cancel()
	l.progress("starting Kubernetes " + cluster.Version)
	steps := l.objects(client, cluster)
	for _, each := range table {
		steps = append(steps, step{each.Name, each.After, func(ctx context.Context) error { return l.launch(ctx, each) }})
	}
	return runSteps(ctx, steps, func(name string) { l.progress(name + " ready") })
}

// objects returns the steps that use the Kubernetes API.
func (l *launcher) objects(client addon.Cluster, cluster state) []step {
	usable := step{name: "every node", after: []string{"kube-controller-manager", "kube-proxy"}}
	var names []string
	for _, node := range plan.Nodes(cluster.Nodes) {
		names = append(names, node.Name())
		usable.after = append(usable.after, "kubelet-"+node.Name())
	}
	usable.run = func(ctx context.Context) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() { cancel(l.awaitExit(ctx, usable.after)) }()
		return client.AwaitUsable(ctx, names)
	}
	steps := []step{
		usable,
		{component.Addons, []string{"kube-apiserver"}, client.CreateAddons},
		{component.CertManagerResources, []string{"kube-apiserver"}, func(ctx context.Context) error {
			return client.CreateDefinitions(ctx, l.dir.Share("cert-manager"))
		}},
	}
	if cluster.SimulatedNodes > 0 {
		steps = append(steps, step{"every simulated node", []string{"kwok", "kube-controller-manager"}, func(ctx context.Context) error {
			return client.SimulateNodes(ctx, l.dir.Share("simulated", "node.yaml"), cluster.SimulatedNodes)
		}})
	}
	return steps
}

// healthy reports whether every component works.
func (l *launcher) healthy(ctx context.Context, table []component.Component) bool {
	for _, each := range table {
		if recorded, err := l.process(each.Name); err != nil || !recorded.Alive() || each.Ready(ctx) != nil {
			return false
		}
	}
	return true
}
