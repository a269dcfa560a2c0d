package apps

import (
	appsv1 "k8s.io/api/apps/v1"
)

// Surges reports whether the DaemonSet surges. It is AllowsSurge of pkg/controller/daemon/util/daemonset_util.go.
func (d *DaemonSet) Surges() bool {
	rolling := d.Spec.UpdateStrategy.RollingUpdate
	return rolling != nil && scaled(rolling.MaxSurge, 1, true) > 0
}

// MaxUnavailable is the maxUnavailable of updatedDesiredNodeCounts in pkg/controller/daemon/update.go: rounded up, and at least
// one. With strategy OnDelete it is one, whatever is left there of another strategy.
func (d *DaemonSet) MaxUnavailable(nodes int) int {
	rolling := d.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return 1
	}
	return max(1, int(scaled(rolling.MaxUnavailable, int32(nodes), true)))
}
