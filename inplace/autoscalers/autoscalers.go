package autoscalers

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/steps"
)

// Target is a workload that autoscalers may scale.
type Target struct{ Kind, Name string }

// About returns one line about the autoscaler, if it scales the target and counts as load what containers use to start after this change;
// empty if not.
func About(scaler *autoscalingv2.HorizontalPodAutoscaler, target Target, change edit.Change) string {
	if !target.is(scaler.Spec.ScaleTargetRef) {
		return ""
	}
	counts, why := countsStarts(&scaler.Spec, change)
	if !counts {
		return ""
	}
	return fmt.Sprintf(steps.AutoscalerPrefix+"%s %s: what restarted containers use to start counts as load. "+
		"behavior.scaleUp.stabilizationWindowSeconds beyond the update's length keeps it from scaling up for that", scaler.Name, why)
}

func (t Target) is(ref autoscalingv2.CrossVersionObjectReference) bool {
	group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	return group == schema.GroupKind{Group: "apps", Kind: t.Kind} && ref.Name == t.Name
}

// countsStarts reports whether the autoscaler counts as load what containers use to start, and which part of its spec decides that.
func countsStarts(scaler *autoscalingv2.HorizontalPodAutoscalerSpec, change edit.Change) (counts bool, why string) {
	if patient, how := waits(scaler.Behavior); patient {
		return false, how
	}
	for _, metric := range scaler.Metrics {
		if sees, how := seesStarts(metric, change); sees {
			return true, how
		}
	}
	return false, "does not scale by cpu of containers that restart"
}

// waits reports whether the autoscaler does not scale up at once. Only the owner of the containers knows which window is long enough.
func waits(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) (patient bool, how string) {
	if behavior == nil || behavior.ScaleUp == nil {
		return false, "scales up at once"
	}
	up := behavior.ScaleUp
	switch {
	case up.SelectPolicy != nil && *up.SelectPolicy == autoscalingv2.DisabledPolicySelect:
		return true, "never scales up"
	case up.StabilizationWindowSeconds != nil && *up.StabilizationWindowSeconds > 0:
		return true, fmt.Sprintf("waits %d s before it scales up", *up.StabilizationWindowSeconds)
	}
	return false, "scales up at once"
}

// seesStarts reports whether the metric includes what a restarting container uses to start.
func seesStarts(metric autoscalingv2.MetricSpec, change edit.Change) (sees bool, how string) {
	switch {
	case metric.Resource != nil && metric.Resource.Name == corev1.ResourceCPU:
		return change.Restarts(), "scales by cpu"
	case metric.ContainerResource != nil && metric.ContainerResource.Name == corev1.ResourceCPU:
		name := metric.ContainerResource.Container
		return change.RestartsContainer(name), "scales by cpu of container " + name
	}
	return false, "does not scale by cpu"
}
