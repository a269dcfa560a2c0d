package readiness

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// WhyNoSurge returns why a second pod of that spec cannot run beside the first on every node. It is empty if no reason is known.
// The argument claim is a PersistentVolumeClaim that only one node, or one pod, can mount. It is empty if there is none.
func WhyNoSurge(spec corev1.PodSpec, claim string) string {
	if port := nodePort(spec); port != 0 {
		return fmt.Sprintf("it uses port %d of its node", port)
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
