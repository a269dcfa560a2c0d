package steps

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

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

// ScaleTarget is a workload that autoscalers may scale.
type ScaleTarget struct{ Kind, Name string }

// AboutAutoscaler returns one line about the autoscaler, if it scales the target and counts as load what containers use to start after this
// change; empty if not.
func AboutAutoscaler(scaler *autoscalingv2.HorizontalPodAutoscaler, target ScaleTarget, change edit.Change) string {
	ref := scaler.Spec.ScaleTargetRef
	group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	if ref.Name != target.Name || group != (schema.GroupKind{Group: "apps", Kind: target.Kind}) {
		return ""
	}
	how := countsStarts(&scaler.Spec, change)
	if how == "" {
		return ""
	}
	return fmt.Sprintf("HorizontalPodAutoscaler %s %s: what restarted containers use to start counts as load. "+
		"behavior.scaleUp.stabilizationWindowSeconds beyond the update's length keeps it from scaling up for that", scaler.Name, how)
}

// countsStarts returns by which part of its spec the autoscaler counts as load what containers use to start; empty if it does not.
func countsStarts(scaler *autoscalingv2.HorizontalPodAutoscalerSpec, change edit.Change) string {
	if waitsToScale(scaler.Behavior) {
		return ""
	}
	for _, metric := range scaler.Metrics {
		switch container := metric.ContainerResource; {
		case metric.Resource != nil && metric.Resource.Name == corev1.ResourceCPU && change.Restarts():
			return "scales by cpu"
		case container != nil && container.Name == corev1.ResourceCPU && change.RestartsContainer(container.Container):
			return "scales by cpu of container " + container.Container
		}
	}
	return ""
}

// waitsToScale reports whether the autoscaler does not scale up at once. Which window is long enough depends on the application.
func waitsToScale(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) bool {
	if behavior == nil || behavior.ScaleUp == nil {
		return false
	}
	up := behavior.ScaleUp
	never := up.SelectPolicy != nil && *up.SelectPolicy == autoscalingv2.DisabledPolicySelect
	return never || ptr.Deref(up.StabilizationWindowSeconds, 0) > 0
}
