// Package component is the table of the cluster's components: one entry for each process. All commands that start, stop and show components
// use it.
package component

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/stayput/stayput/e2e/cluster/internal/layout"
	"github.com/stayput/stayput/e2e/cluster/internal/plan"
)

// Component is one process of the cluster.
type Component struct {
	Name string
	// Argv is the command line; its first element is a path.
	Argv []string
	// Files are the configuration files to write before the start: content by path.
	Files map[string]string
	// Listens are the addresses that have to be free.
	Listens []netip.AddrPort
	// Socket is the path of a unix socket that several components use. A component replaces it by its own while it starts. If two do so at
	// once, both exit, so they start one after the other.
	Socket string
	// After are the names of the components that it cannot start without.
	After []string
	// Ready returns nil once the component works.
	Ready func(context.Context) error
}

// Some components wait for objects: Addons has their permissions, CertManagerResources is CustomResourceDefinitions.
const (
	Addons               = "addons"
	CertManagerResources = "cert-manager's resources"
)

// Table returns all components of a cluster with so many real and simulated nodes. Components that others need come first.
func Table(dir layout.Dir, nodes, simulatedNodes int) []Component {
	table := append(controlPlane(dir), registry(dir), coreDNS(dir), certManager(dir))
	for _, node := range plan.Nodes(nodes) {
		table = append(table, containerd(dir, node), kubelet(dir, node))
	}
	if simulatedNodes > 0 {
		table = append(table, kwok(dir))
	}
	return table
}

// Prepare writes the component's files.
func (c Component) Prepare() error {
	for path, content := range c.Files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("configuration of %s: %w", c.Name, err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fmt.Errorf("configuration of %s: %w", c.Name, err)
		}
	}
	return nil
}

func registry(dir layout.Dir) Component {
	return Component{
		Name:    "registry",
		Argv:    []string{dir.Bin("cluster"), "registry"},
		Listens: listens(plan.RegistryAddress),
		Ready:   answers("http://" + plan.RegistryAddress + "/v2/"),
	}
}

func listens(addresses ...string) []netip.AddrPort {
	var parsed []netip.AddrPort
	for _, address := range addresses {
		parsed = append(parsed, netip.MustParseAddrPort(address))
	}
	return parsed
}

// fill replaces each {key} of a configuration by its value.
func fill(template string, values map[string]string) string {
	var pairs []string
	for key, value := range values {
		pairs = append(pairs, "{"+key+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(template)
}
