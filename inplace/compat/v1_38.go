package compat

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	versions "k8s.io/apimachinery/pkg/util/version"
)

// Image volumes are on by default from Kubernetes 1.35 (ImageVolume in pkg/features/kube_features.go). These kubelets and runtimes
// mount them.
var (
	mountingKubelet  = versions.MustParseGeneric("1.35")
	mountingRuntimes = map[string]*versions.Version{"containerd": versions.MustParseGeneric("2.1"), "cri-o": versions.MustParseGeneric("1.31")}
)

// verifyingKubelet is the first kubelet that verifies by default who may use an image that is on its node.
var verifyingKubelet = versions.MustParseGeneric("1.35")

// VerifiesImages reports whether a kubelet of that version asks the registry about an image that its node has, unless it knows that a pod
// with the same secrets or service account has pulled it, or any pod may, by the same name but for tag and digest
// (KubeletEnsureSecretPulledImages in pkg/features/kube_features.go, MustAttemptImagePull in pkg/kubelet/images/pullmanager).
func VerifiesImages(kubelet string) bool { return !olderThan(verifyingKubelet, kubelet) }

// CannotMount returns why pods on the node cannot have images as volumes. It is empty if they can.
func CannotMount(node *corev1.Node) string {
	info := node.Status.NodeInfo
	if info.OperatingSystem == string(corev1.Windows) {
		return "Windows"
	}
	if olderThan(mountingKubelet, info.KubeletVersion) {
		return fmt.Sprintf("kubelet %q is not %s or newer", info.KubeletVersion, mountingKubelet)
	}
	name, number, _ := strings.Cut(info.ContainerRuntimeVersion, "://")
	least, known := mountingRuntimes[name]
	if !known || olderThan(least, number) {
		return fmt.Sprintf("container runtime %q is neither containerd 2.1 nor cri-o 1.31 or newer", info.ContainerRuntimeVersion)
	}
	return ""
}
