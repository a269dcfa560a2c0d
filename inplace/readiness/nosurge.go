package readiness

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// WhyNoSurge returns why a second pod of that spec cannot run beside the first on every node. It is empty if no reason is known.
// The argument claim is a PersistentVolumeClaim that only one node, or one pod, can mount. It is empty if there is none.
func WhyNoSurge(spec corev1.PodSpec, claim string) string {
	if port := nodePort(spec); port != 0 {
		return fmt.Sprintf("it uses port %d of its node", port)
	}
	if device := deviceOf(spec); device != "" {
		return fmt.Sprintf("not every node has another device for its %s", device)
	}
	if claim != "" {
		return fmt.Sprintf("not every node can mount its PersistentVolumeClaim %s beside the first", claim)
	}
	return ""
}

// nodePort returns a port of the node that the pod takes, or 0 if it takes none. In the host's network, that is every port of its
// containers, even if the template leaves out hostPort (SetDefaults_Pod in pkg/apis/core/v1/defaults.go).
func nodePort(spec corev1.PodSpec) int32 {
	for _, container := range slices.Concat(spec.Containers, spec.InitContainers) {
		for _, port := range container.Ports {
			switch {
			case port.HostPort != 0:
				return port.HostPort
			case spec.HostNetwork:
				return port.ContainerPort
			}
		}
	}
	return 0
}

// deviceOf returns what gives the pod a device, such as a GPU: an extended resource, or a claim. It is empty if nothing does. Devices are
// what nodes have fewest of: if a surge pod waited for one, an autoscaler would start a node for it.
func deviceOf(spec corev1.PodSpec) string {
	if claims := spec.ResourceClaims; len(claims) > 0 {
		return "ResourceClaim " + claims[0].Name
	}
	for _, container := range slices.Concat(spec.Containers, spec.InitContainers) {
		limits := container.Resources.Limits // the requests of an extended resource are the same
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			// IsExtendedResourceName of pkg/apis/core/v1/helper/helpers.go.
			extended := strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
			if amount := limits[name]; extended && !amount.IsZero() {
				return string(name)
			}
		}
	}
	return ""
}

// ClaimsOf returns the names of the claims that all pods of that spec share.
func ClaimsOf(spec corev1.PodSpec) []string {
	var claims []string
	for _, volume := range spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			claims = append(claims, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	return claims
}

// SingleNode reports whether only one node at a time, or one pod, can mount the volume. Once the claim is bound, the volume's own
// modes count.
func SingleNode(claim *corev1.PersistentVolumeClaim) bool {
	modes := claim.Status.AccessModes
	if len(modes) == 0 {
		modes = claim.Spec.AccessModes
	}
	return !slices.Contains(modes, corev1.ReadWriteMany) && !slices.Contains(modes, corev1.ReadOnlyMany)
}
