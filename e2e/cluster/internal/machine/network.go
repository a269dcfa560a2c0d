package machine

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"

	"github.com/stayput/stayput/e2e/cluster/internal/plan"
)

const bridgePrefix = "stayput"

// SetUpNetwork makes the bridges of the control plane and the nodes, the route to the Services and the nftables rules, and opens a firewall
// that would drop the pods' packets.
func SetUpNetwork(nodes int) error {
	controlPlane, err := ensureBridge(plan.ControlPlaneBridge, plan.ControlPlaneIP)
	if err != nil {
		return err
	}
	for _, node := range plan.Nodes(nodes) {
		if _, err := ensureBridge(node.Bridge(), node.IP()); err != nil {
			return err
		}
	}
	if err := routeServices(controlPlane); err != nil {
		return err
	}
	if err := nft(hairpin(nodes)); err != nil {
		return err
	}
	return openFirewall()
}

// ensureBridge makes a bridge with the address ip/24. Its hardware address is fixed. Otherwise the bridge takes the address of a port, and
// the pods' neighbour tables become wrong whenever a pod is created or deleted.
func ensureBridge(name, ip string) (netlink.Link, error) {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = name
	address := net.ParseIP(ip).To4()
	attributes.HardwareAddr = append(net.HardwareAddr{0x02, 0x00}, address...)
	bridge := &netlink.Bridge{LinkAttrs: attributes}
	if err := netlink.LinkAdd(bridge); err != nil && !errors.Is(err, syscall.EEXIST) {
		return nil, fmt.Errorf("bridge %s: %w", name, err)
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("bridge %s: %w", name, err)
	}
	subnet := &net.IPNet{IP: address, Mask: net.CIDRMask(24, 32)}
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: subnet}); err != nil {
		return nil, fmt.Errorf("address %s of bridge %s: %w", ip, name, err)
	}
	return link, netlink.LinkSetUp(link)
}

// routeServices adds a route to the addresses of Services for hosts without a default route. These addresses exist only in kube-proxy's
// rules, which apply only to packets that have a route, whatever its destination.
func routeServices(controlPlane netlink.Link) error {
	_, services, err := net.ParseCIDR(plan.ServiceCIDR)
	if err != nil {
		return err
	}
	route := &netlink.Route{LinkIndex: controlPlane.Attrs().Index, Dst: services, Src: net.ParseIP(plan.ControlPlaneIP)}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("route to %s: %w", services, err)
	}
	return nil
}

// hairpin returns rules for a pod that calls itself through its Service: the client's address must not be its own, or it would answer
// itself directly. kube-proxy has such rules, but only for pods of the node that it runs as, and one kube-proxy serves all nodes here. Only
// these packets lose their client's address.
func hairpin(nodes int) string {
	var pods []string
	for _, node := range plan.Nodes(nodes) {
		for ip := node.Subnet().Addr().Next(); node.Subnet().Contains(ip); ip = ip.Next() {
			pods = append(pods, fmt.Sprintf("%s . %s", ip, ip))
		}
	}
	return fmt.Sprintf(`table ip stayput
delete table ip stayput
table ip stayput {
	set itself {
		type ipv4_addr . ipv4_addr
		elements = { %s }
	}
	chain postrouting {
		type nat hook postrouting priority srcnat
		ct status dnat ip saddr . ip daddr @itself masquerade
	}
}
`, strings.Join(pods, ", "))
}

// TearDownNetwork removes all bridges and their ports, and so their routes, and the nftables tables: the cluster's, kube-proxy's and the
// portmap plugin's.
func TearDownNetwork() error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list network interfaces: %w", err)
	}
	bridges := map[int]bool{}
	for _, link := range links {
		if link.Type() == "bridge" && strings.HasPrefix(link.Attrs().Name, bridgePrefix) {
			bridges[link.Attrs().Index] = true
		}
	}
	var failures []error
	for _, link := range links {
		if bridges[link.Attrs().Index] || bridges[link.Attrs().MasterIndex] {
			failures = append(failures, removeLink(link))
		}
	}
	return errors.Join(append(failures, removeTables(), closeFirewall())...)
}

// removeLink succeeds if the link is gone: the kernel removes a veth with its pod's namespace.
func removeLink(link netlink.Link) error {
	err := netlink.LinkDel(link)
	if err == nil || errors.Is(err, syscall.ENODEV) {
		return nil
	}
	return fmt.Errorf("remove interface %s: %w", link.Attrs().Name, err)
}

// removeTables first adds each table, because deleting a table that does not exist is an error.
func removeTables() error {
	var script strings.Builder
	for _, table := range []string{"ip stayput", "ip kube-proxy", "ip6 kube-proxy", "ip cni_hostport", "ip6 cni_hostport"} {
		fmt.Fprintf(&script, "table %s\ndelete table %s\n", table, table)
	}
	return nft(script.String())
}

// nft applies script in one transaction.
func nft(script string) error {
	command := exec.Command("nft", "-f", "-")
	command.Stdin = strings.NewReader(script)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}

// ForeignAddress returns an address within the cluster's networks that belongs to a foreign interface, and that interface. The cluster
// would take the traffic of that network.
func ForeignAddress() (culprit string, found bool, err error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return "", false, err
	}
	for _, each := range interfaces {
		addresses, err := each.Addrs()
		if err != nil {
			return "", false, err
		}
		for _, address := range addresses {
			if !strings.HasPrefix(each.Name, bridgePrefix) && inCluster(address.String()) {
				return fmt.Sprintf("%s of %s", address, each.Name), true, nil
			}
		}
	}
	return "", false, nil
}

func inCluster(cidr string) bool {
	prefix, err := netip.ParsePrefix(cidr)
	return err == nil && (prefix.Overlaps(netip.MustParsePrefix(plan.PodCIDR)) || prefix.Overlaps(netip.MustParsePrefix(plan.ServiceCIDR)))
}
