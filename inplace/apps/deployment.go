package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// ExplicitZero reports whether the user wrote that no pod may be unavailable.
func ExplicitZero(d *Deployment) bool {
	rolling := d.Spec.Strategy.RollingUpdate
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType || rolling == nil || rolling.MaxUnavailable == nil {
		return false
	}
	ofHundred, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, 100, true)
	return err == nil && ofHundred == 0
}

// MaxUnavailable is MaxUnavailable of pkg/controller/deployment/util/deployment_util.go.
func (d *Deployment) MaxUnavailable() int32 {
	if !d.Rolls() {
		return 0
	}
	_, unavailable := d.fenceposts()
	return min(unavailable, Desired(d))
}

// MaxSurge is MaxSurge of pkg/controller/deployment/util/deployment_util.go.
func (d *Deployment) MaxSurge() int32 {
	if !d.Rolls() {
		return 0
	}
	surge, _ := d.fenceposts()
	return surge
}

// Rolls reports whether the strategy is RollingUpdate. The other strategy, Recreate, never has pods of two versions.
func (d *Deployment) Rolls() bool {
	return d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
}

// fenceposts is ResolveFenceposts of pkg/controller/deployment/util/deployment_util.go. The API server rejects values that do not
// parse. Here they count as 0.
func (d *Deployment) fenceposts() (surge, unavailable int32) {
	rolling := ptr.Deref(d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
	surge = scaled(rolling.MaxSurge, Desired(d), true)
	unavailable = scaled(rolling.MaxUnavailable, Desired(d), false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func scaled(value *intstr.IntOrString, of int32, up bool) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(value, intstr.FromInt32(0)), int(of), up)
	if err != nil {
		return 0
	}
	return int32(n)
}

// Desired returns spec.replicas of the Deployment, defaulted as the API server does.
func Desired(d *Deployment) int32 { return ptr.Deref(d.Spec.Replicas, 1) }
