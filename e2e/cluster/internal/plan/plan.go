// Package plan is the cluster's address plan: the addresses of components, nodes, pods and Services.
package plan

import (
	"fmt"
	"net/netip"
)

// The address of the control plane is not a loopback address, because pods have to reach it.
const (
	ControlPlaneBridge = "stayput0"
	ControlPlaneIP     = "10.244.0.1"
	// PodCIDR contains the control plane's and every node's subnet.
	PodCIDR     = "10.244.0.0/16"
	ServiceCIDR = "10.96.0.0/12"
	// KubernetesServiceIP is the address of Service default/kubernetes, which kube-apiserver creates.
	KubernetesServiceIP = "10.96.0.1"
	DNSServiceIP        = "10.96.0.10"
	Domain              = "cluster.local"
	APIServerURL        = "https://" + ControlPlaneIP + ":6443"
	EtcdURL             = "http://127.0.0.1:2379"
	RegistryAddress     = "127.0.0.1:5000"
	PauseImage          = RegistryAddress + "/pause:latest"
)

// MaxNodes is the number of nodes that have a subnet in PodCIDR.
const MaxNodes = 254

// Node is a real node's number, from 1.
type Node int

// Nodes returns the nodes 1 to count.
func Nodes(count int) []Node {
	nodes := make([]Node, count)
	for i := range nodes {
		nodes[i] = Node(i + 1)
	}
	return nodes
}

// Name returns the name of the Node object.
func (n Node) Name() string { return fmt.Sprintf("node-%d", n) }

// Bridge returns the interface that the node's pods are connected to.
func (n Node) Bridge() string { return fmt.Sprintf("stayput%d", n) }

// IP returns the node's address, which is its bridge's.
func (n Node) IP() string { return fmt.Sprintf("10.244.%d.1", n) }

// Subnet contains the addresses of the node and its pods.
func (n Node) Subnet() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(n), 0}), 24)
}

// Cgroup returns the parent of the cgroups of the node's pods, as a path within each hierarchy.
func (n Node) Cgroup() string { return CgroupRoot + "/" + n.Name() }

// CgroupRoot contains the cgroups of all pods.
const CgroupRoot = "/stayput"
