package machine

import (
	"fmt"
	"os/exec"
	"strings"
)

// forwarding are the rules of iptables that accept packets from and to the cluster's bridges.
var forwarding = [][]string{
	{"FORWARD", "-i", bridgePrefix + "+", "-j", "ACCEPT"},
	{"FORWARD", "-o", bridgePrefix + "+", "-j", "ACCEPT"},
}

// openFirewall is needed on machines that forward nothing unless a rule accepts it, which is how Docker sets them up. No rule of nftables
// can overrule that.
func openFirewall() error {
	if _, err := exec.LookPath("iptables"); err != nil {
		return nil
	}
	policy, err := iptables("-S", "FORWARD")
	if err != nil || !strings.HasPrefix(policy, "-P FORWARD DROP") {
		return err
	}
	for _, rule := range forwarding {
		if !hasRule(rule) {
			if _, err := iptables("-I", rule...); err != nil {
				return err
			}
		}
	}
	return nil
}

// closeFirewall removes what openFirewall added.
func closeFirewall() error {
	if _, err := exec.LookPath("iptables"); err != nil {
		return nil
	}
	for _, rule := range forwarding {
		if hasRule(rule) {
			if _, err := iptables("-D", rule...); err != nil {
				return err
			}
		}
	}
	return nil
}

func hasRule(rule []string) bool {
	_, err := iptables("-C", rule...)
	return err == nil
}

func iptables(command string, arguments ...string) (string, error) {
	output, err := exec.Command("iptables", append([]string{"-w", command}, arguments...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("iptables %s %s: %w: %s", command, strings.Join(arguments, " "), err, lastLine(output))
	}
	return string(output), nil
}
