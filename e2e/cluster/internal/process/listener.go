package process

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Listener is a listening socket.
type Listener struct {
	Address netip.AddrPort
	inode   string
}

// Listeners returns the machine's listening TCP sockets and its unconnected UDP sockets.
func Listeners() ([]Listener, error) {
	const tcpListen, udpUnconnected = "0A", "07" // include/net/tcp_states.h
	var all []Listener
	for table, state := range map[string]string{
		"tcp": tcpListen, "tcp6": tcpListen, "udp": udpUnconnected, "udp6": udpUnconnected,
	} {
		content, err := os.ReadFile("/proc/net/" + table)
		if os.IsNotExist(err) { // a kernel without IPv6
			continue
		}
		if err != nil {
			return nil, err
		}
		found, err := parseSockets(string(content), state)
		if err != nil {
			return nil, fmt.Errorf("/proc/net/%s: %w", table, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// Blocks reports whether no other process can listen on address while this listener exists.
func (l Listener) Blocks(address netip.AddrPort) bool {
	own := l.Address.Addr().Unmap()
	return l.Address.Port() == address.Port() && (own == address.Addr() || own.IsUnspecified())
}

// Holder returns the pid of a process that has the socket open, and false if there is none, or only one in another pid namespace.
func (l Listener) Holder() (int, bool) {
	pids, err := All()
	if err != nil {
		return 0, false
	}
	link := "socket:[" + l.inode + "]"
	index := slices.IndexFunc(pids, func(pid int) bool { return hasOpen(pid, link) })
	if index < 0 {
		return 0, false
	}
	return pids[index], true
}

// ListensOn returns nil if the process listens on the unix socket at path, even if there is another socket by now.
func (p Process) ListensOn(path string) error {
	content, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return err
	}
	for _, inode := range parseUnixSockets(string(content), path) {
		if hasOpen(p.PID, "socket:["+inode+"]") {
			return nil
		}
	}
	return fmt.Errorf("process %d does not listen on %s", p.PID, path)
}

// parseUnixSockets parses proc_pid_net(5), /proc/net/unix. It returns the inodes of the sockets that listen on path.
func parseUnixSockets(table, path string) []string {
	const flags, inode, name, listens = 3, 6, 7, "00010000" // __SO_ACCEPTCON of include/uapi/linux/net.h
	var found []string
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > name && fields[flags] == listens && fields[name] == path {
			found = append(found, fields[inode])
		}
	}
	return found
}

// hasOpen reports false for a process that ends meanwhile.
func hasOpen(pid int, link string) bool {
	descriptors, err := os.ReadDir(procPath(pid, "fd"))
	if err != nil {
		return false
	}
	for _, descriptor := range descriptors {
		if target, err := os.Readlink(procPath(pid, "fd/"+descriptor.Name())); err == nil && target == link {
			return true
		}
	}
	return false
}

// parseSockets parses proc_pid_net(5), /proc/net/tcp. It returns the sockets in state.
func parseSockets(table, state string) ([]Listener, error) {
	var found []Listener
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		fields := strings.Fields(line)
		const local, status, inode = 1, 3, 9
		if len(fields) <= inode || fields[status] != state {
			continue
		}
		address, err := parseAddress(fields[local])
		if err != nil {
			return nil, err
		}
		found = append(found, Listener{Address: address, inode: fields[inode]})
	}
	return found, nil
}

// parseAddress parses "0100007F:1388" as 127.0.0.1:5000: words of four bytes in the machine's order, here little-endian.
func parseAddress(text string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(text, ":")
	bytes, err := hex.DecodeString(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for word := range slices.Chunk(bytes, 4) {
		slices.Reverse(word)
	}
	address, ok := netip.AddrFromSlice(bytes)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("address %q has %d bytes, want 4 or 16", text, len(bytes))
	}
	number, err := strconv.ParseUint(port, 16, 16)
	return netip.AddrPortFrom(address, uint16(number)), err
}
