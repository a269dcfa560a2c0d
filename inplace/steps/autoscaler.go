package steps

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stayput/stayput/inplace/edit"
)

// What follows tells which HorizontalPodAutoscalers count as load what containers use to start.
//
// An autoscaler that scales by CPU ignores pods that are not Ready in their first minutes, counted from the pod's startTime (groupPods in
// pkg/controller/podautoscaler/replica_calculator.go):
//
//   - up to five minutes (--horizontal-pod-autoscaler-cpu-initialization-period): while the pod is not Ready, and its first sample after
//     that;
//   - later: only if the pod is not Ready, and has not been Ready since its first 30 s.
//
// A container that restarts does not change that time, which the kubelet writes, so the CPU that it uses to start counts. For all other
// metrics, including memory, starts count natively as well. e2e/conformance/autoscaler runs the native controller on given pods. It shows
// what that wants here and natively, and that stabilizationWindowSeconds helps as long as starts do not outlast it.
//
// Stayput only tells the user, for an autoscaler that scales up at once by CPU of pods, or of a container that restarts: as a warning of
// the edit, and in kubectl stayput plan. It does not pace by it. maxUnavailable says how many pods start at a time, as it does natively
// together with maxSurge. With fewer at a time the starts would be seen for longer, and one is enough: for ten pods of which one uses 400 %
// to start, the autoscaler wants fourteen. And an update that waited for the metrics to fall could be held up by any load.

// AutoscalerPrefix is the prefix of the line about an autoscaler.
const AutoscalerPrefix = "HorizontalPodAutoscaler "

// ScaleTarget is a workload that autoscalers may scale.
type ScaleTarget struct{ Kind, Name string }

// AboutAutoscaler returns one line about the autoscaler, if it scales the target and counts as load what containers use to start after this
// change; empty if not.
func AboutAutoscaler(scaler *autoscalingv2.HorizontalPodAutoscaler, target ScaleTarget, change edit.Change) string {
	if !target.is(scaler.Spec.ScaleTargetRef) {
		return ""
	}
	counts, why := countsStarts(&scaler.Spec, change)
	if !counts {
		return ""
	}
	return fmt.Sprintf(AutoscalerPrefix+"%s %s: what restarted containers use to start counts as load. "+
		"behavior.scaleUp.stabilizationWindowSeconds beyond the update's length keeps it from scaling up for that", scaler.Name, why)
}

func (t ScaleTarget) is(ref autoscalingv2.CrossVersionObjectReference) bool {
	group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	return group == schema.GroupKind{Group: "apps", Kind: t.Kind} && ref.Name == t.Name
}

// countsStarts reports whether the autoscaler counts as load what containers use to start, and which part of its spec decides that.
func countsStarts(scaler *autoscalingv2.HorizontalPodAutoscalerSpec, change edit.Change) (counts bool, why string) {
	if patient, how := waitsToScale(scaler.Behavior); patient {
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
func waitsToScale(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) (patient bool, how string) {
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
