package readiness

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// WhyNoSurge is why a second pod of that spec can run beside the first on some nodes at most; empty if nothing is known against it. The claim is
// one that only one node, or one pod, can mount; empty if there is none.
func WhyNoSurge(spec corev1.PodSpec, claim string) string {
	if port := nodePort(spec); port != 0 {
		return fmt.Sprintf("it takes port %d of its node", port)
	}
	if claim != "" {
		return fmt.Sprintf("not every node can mount its PersistentVolumeClaim %s beside the first", claim)
	}
	return ""
}

// nodePort is a port of the node that the pod takes, 0 if it takes none. In the host's network that is every port of its containers, also
// where the template leaves hostPort out (SetDefaults_Pod in pkg/apis/core/v1/defaults.go).
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

// ClaimsOf names the claims that all pods of that spec share.
func ClaimsOf(spec corev1.PodSpec) []string {
	var claims []string
	for _, volume := range spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			claims = append(claims, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	return claims
}

// ForOneNode reports whether the volume can be mounted on one node at a time only, or by one pod: the volume's own modes once it is bound.
func ForOneNode(claim *corev1.PersistentVolumeClaim) bool {
	modes := claim.Status.AccessModes
	if len(modes) == 0 {
		modes = claim.Spec.AccessModes
	}
	return !slices.Contains(modes, corev1.ReadWriteMany) && !slices.Contains(modes, corev1.ReadOnlyMany)
}
