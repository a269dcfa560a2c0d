package prepull

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	versions "k8s.io/apimachinery/pkg/util/version"

	"github.com/stayput/stayput/inplace/compat"
)

// Image volumes are on by default from Kubernetes 1.35 (ImageVolume in pkg/features/kube_features.go). These kubelets and runtimes
// mount them.
var (
	mountingKubelet  = versions.MustParseGeneric("1.35")
	mountingRuntimes = map[string]*versions.Version{"containerd": versions.MustParseGeneric("2.1"), "cri-o": versions.MustParseGeneric("1.31")}
)

// CannotMount returns why pods on the node cannot have images as volumes. It is empty if they can.
func CannotMount(node *corev1.Node) string {
	info := node.Status.NodeInfo
	if info.OperatingSystem == string(corev1.Windows) {
		return "Windows"
	}
	if compat.OlderThan(mountingKubelet, info.KubeletVersion) {
		return fmt.Sprintf("kubelet %q is not %s or newer", info.KubeletVersion, mountingKubelet)
	}
	name, number, _ := strings.Cut(info.ContainerRuntimeVersion, "://")
	least, known := mountingRuntimes[name]
	if !known || compat.OlderThan(least, number) {
		return fmt.Sprintf("container runtime %q is neither containerd 2.1 nor cri-o 1.31 or newer", info.ContainerRuntimeVersion)
	}
	return ""
}

// quotaLeft returns how many more pre-pull pods the quotas admit if the reserve is kept free. It also returns the message for that
// limit. Quotas that count anything but pods are found only when they refuse a pod.
func (p *PrePull) quotaLeft() (int, string) {
	room, why := math.MaxInt, ""
	for _, quota := range p.Quotas {
		for _, counted := range []corev1.ResourceName{corev1.ResourcePods, "count/pods"} {
			hard, limited := quota.Status.Hard[counted]
			if !limited || !countsPods(quota) {
				continue
			}
			used := quota.Status.Used[counted]
			if left := max(0, int(hard.Value()-used.Value())-p.Reserve); left < room {
				room, why = left, fmt.Sprintf("ResourceQuota %s admits no more pods: %s of %s are used", quota.Name, used.String(), hard.String())
			}
		}
	}
	return room, why
}

// countsPods reports whether the quota's scopes match a pod that has requests, no deadline and no priority of its own.
func countsPods(quota corev1.ResourceQuota) bool {
	scopes := quota.Spec.Scopes
	if quota.Spec.ScopeSelector != nil {
		for _, expression := range quota.Spec.ScopeSelector.MatchExpressions {
			scopes = append(scopes[:len(scopes):len(scopes)], expression.ScopeName)
		}
	}
	for _, scope := range scopes {
		if scope != corev1.ResourceQuotaScopeNotBestEffort && scope != corev1.ResourceQuotaScopeNotTerminating {
			return false
		}
	}
	return true
}
