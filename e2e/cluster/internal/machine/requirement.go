package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Require installs what it can, and returns an error with one sentence about what the machine still lacks.
func Require(ctx context.Context, progress func(string)) error {
	if os.Geteuid() != 0 {
		return errors.New("mounts, network interfaces and cgroups need root: run this again with sudo")
	}
	if err := requireCommand(ctx, "nft", "nftables", progress); err != nil {
		return err
	}
	if err := requireBridgeFilter(ctx); err != nil {
		return err
	}
	culprit, found, err := ForeignAddress()
	if found {
		err = fmt.Errorf("the address %s is within the cluster's networks: remove that interface first", culprit)
	}
	return err
}

// requireCommand installs the distribution's package if the command is missing and the distribution is Debian or derived from it.
func requireCommand(ctx context.Context, command, pkg string, progress func(string)) error {
	if _, err := exec.LookPath(command); err == nil {
		return nil
	}
	missing := fmt.Errorf("the command %s is missing: install the package %s", command, pkg)
	if _, err := exec.LookPath("apt-get"); err != nil {
		return missing
	}
	progress("installing " + pkg)
	for _, arguments := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", pkg}} {
		if output, err := exec.CommandContext(ctx, "apt-get", arguments...).CombinedOutput(); err != nil {
			return fmt.Errorf("%w (apt-get %s: %w: %s)", missing, arguments[0], err, lastLine(output))
		}
	}
	return nil
}

// requireBridgeFilter loads br_netfilter. Without it the answer of a Service's pod to another pod of its bridge bypasses the rules and
// comes from the wrong address.
func requireBridgeFilter(ctx context.Context) error {
	const sysctl = "net.bridge.bridge-nf-call-iptables"
	if _, err := os.Stat(sysctlPath(sysctl)); err == nil {
		return nil
	}
	if output, err := exec.CommandContext(ctx, "modprobe", "br_netfilter").CombinedOutput(); err != nil {
		return fmt.Errorf("the kernel module br_netfilter is missing: load it (modprobe: %w: %s)", err, lastLine(output))
	}
	return nil
}

func lastLine(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	return lines[len(lines)-1]
}
