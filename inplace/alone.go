package inplace

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A borrowed pod runs beside those for which it is borrowed, on whatever node it comes to. Where it may not, borrowing would wait for the
// deadline and for nothing; natively such an update hangs for ever. With a percentage, which only happens to round to none, pods restart one
// at a time instead, at once. Who wrote that no pod may be missed is asked to wait: a free node may come.

// unplaceableAfter is how long the scheduler may find no node for what was borrowed. It tries again with every event that might help.
const unplaceableAfter = 30 * time.Second

// whyAlone is why a second pod of that spec can run beside the first on some nodes at most; empty if nothing is known against it. The claim is
// one that only one node, or one pod, can mount; empty if there is none.
func whyAlone(spec corev1.PodSpec, claim string) string {
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

// claimsOf names the claims that all pods of that spec share.
func claimsOf(spec corev1.PodSpec) []string {
	var claims []string
	for _, volume := range spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			claims = append(claims, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	return claims
}

// ForOneNode tells whether the volume can be mounted on one node at a time only, or by one pod: the volume's own modes once it is bound.
func ForOneNode(claim *corev1.PersistentVolumeClaim) bool {
	modes := claim.Status.AccessModes
	if len(modes) == 0 {
		modes = claim.Spec.AccessModes
	}
	return !slices.Contains(modes, corev1.ReadWriteMany) && !slices.Contains(modes, corev1.ReadOnlyMany)
}

// alone: nothing is borrowed, since it would be in vain.
func (v *view) alone() bool { return v.whyAlone != "" && !explicitZero(v.Deployment) }

// unplaceable tells whether no node has been found for anything that was borrowed, for long; if it is only a matter of time, of how much.
func (v *view) unplaceable() (bool, time.Duration) {
	if v.target == nil || v.target.loan == 0 {
		return false, 0
	}
	borrowed := v.target.borrowed()
	for _, m := range borrowed {
		scheduled := condition(m.pod, corev1.PodScheduled)
		if m.pod.Spec.NodeName != "" || scheduled == nil || scheduled.Reason != corev1.PodReasonUnschedulable {
			return false, 0
		}
		if long, wait := since(scheduled.LastTransitionTime.Time, unplaceableAfter, v.Now); !long {
			return false, wait
		}
	}
	return len(borrowed) >= v.target.loan, 0
}

// explainWait says why an update waits that was told to miss no pod, where a second one may never run.
func (v *view) explainWait() {
	if v.waiting == "" && v.whyAlone != "" && v.borrowing() && v.anyToRestart() && v.target.available() == 0 {
		v.waiting = "waiting for a second pod, as maxUnavailable is 0, and " + v.whyAlone
	}
}
