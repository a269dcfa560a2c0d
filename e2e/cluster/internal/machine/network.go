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

// SetUpNetwork makes the bridges of the control plane and the nodes, the route to the Services and the nftables rules,
// and opens a firewall that would stop the pods.
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

// ensureBridge makes a bridge with the address ip/24. Its hardware address is fixed: a bridge without its own takes
// over a port's, and the pods' neighbour tables become wrong whenever a pod comes or goes.
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

// routeServices gives a host without a default route a way to the addresses of Services, which exist only in
// kube-proxy's rules: those apply to a packet that has a route, wherever it leads.
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

// hairpin are rules for a pod that reaches itself through its Service: it must not see its own address as the
// client's, or it would answer itself past the Service. kube-proxy has such rules, but only for pods of the node it
// runs as, and one kube-proxy serves all nodes here. Only these packets lose their client's address.
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

// TearDownNetwork removes all bridges with whatever is connected to them, which removes their routes, and the
// nftables tables: the own one, kube-proxy's and the portmap plugin's.
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

// removeLink takes it as done if the link is gone: a veth goes with its pod's namespace.
func removeLink(link netlink.Link) error {
	err := netlink.LinkDel(link)
	if err == nil || errors.Is(err, syscall.ENODEV) {
		return nil
	}
	return fmt.Errorf("remove interface %s: %w", link.Attrs().Name, err)
}

// removeTables first declares each table, which makes deleting one that does not exist no error.
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

// ForeignAddress is an address of an interface of somebody else's within the cluster's, with its interface: with it
// the cluster would take the traffic of that network.
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
