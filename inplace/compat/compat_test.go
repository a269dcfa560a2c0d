package compat

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestVersions(t *testing.T) {
	for name, test := range map[string]struct {
		asks      func(version string) bool
		last, new string
	}{
		"supported":       {Supported, "v1.34.9", "v1.35.0-eks-1"},
		"images verified": {VerifiesImages, "v1.34.9", "v1.35.0"},
		"sandbox":         {ReportsSandbox, "v1.35.8+k3s1", "v1.36.0-gke.100"},
	} {
		if test.asks(test.last) || !test.asks(test.new) || test.asks("unknown") {
			t.Errorf("%s: %s %t, %s %t, a version that does not parse %t",
				name, test.last, test.asks(test.last), test.new, test.asks(test.new), test.asks("unknown"))
		}
	}
}

func TestCannotMount(t *testing.T) {
	for name, test := range map[string]struct {
		system, kubelet, runtime string
		mounts                   bool
	}{
		"containerd":         {"linux", "v1.36.0", "containerd://2.1.0", true},
		"an older one":       {"linux", "v1.36.0", "containerd://2.0.9", false},
		"cri-o":              {"linux", "v1.36.0", "cri-o://1.31.0", true},
		"an unknown runtime": {"linux", "v1.36.0", "docker://29.0.0", false},
		"an older kubelet":   {"linux", "v1.34.9", "containerd://2.1.0", false},
		"Windows":            {"windows", "v1.36.0", "containerd://2.1.0", false},
	} {
		node := &corev1.Node{}
		info := &node.Status.NodeInfo
		info.OperatingSystem, info.KubeletVersion, info.ContainerRuntimeVersion = test.system, test.kubelet, test.runtime
		if why := CannotMount(node); (why == "") != test.mounts {
			t.Errorf("%s: %q", name, why)
		}
	}
}
