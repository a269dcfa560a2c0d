// Package autoscalers tells which HorizontalPodAutoscalers count as load what containers use to start.
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
package autoscalers
