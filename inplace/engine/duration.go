package engine

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

const (
	// shortestTold is the shortest update of which users are told how long it takes.
	shortestTold = 10 * time.Second
	// longestStart is the longest start that is believed, the default of progressDeadlineSeconds. After longer, a pod rather became Ready
	// again because it had lost that meanwhile.
	longestStart = 10 * time.Minute
)

// AboutDuration returns one line about how long so many pods take, if these containers of them restart as the preview says. It is empty if
// the running pods do not say how long that takes, or if it takes seconds.
func (s Snapshot) AboutDuration(preview steps.Preview, left int, restarting []string) string {
	start, known := startOf(s.Pods, restarting)
	if !known || preview.AtATime <= 0 {
		return ""
	}
	batches := 0
	if preview.SurgePods > 0 { // as many fewer restart until these have started
		batches, left = 1, max(0, left-preview.Replaced-(preview.AtATime-preview.SurgePods))
	}
	batches += (left + preview.AtATime - 1) / preview.AtATime
	each := start + time.Duration(preview.MinReadySeconds)*time.Second
	total := time.Duration(batches) * each
	if total < shortestTold {
		return ""
	}
	besides := "stops"
	if s.Settings.Drain > 0 {
		besides += " and drains (" + s.Settings.Drain.String() + " behind a Service)"
	}
	return fmt.Sprintf("takes about %s: %d × %s to start, %d at a time; %s come on top",
		total, batches, each, preview.AtATime, besides)
}

// startOf returns how long the containers take from their start until their pod is Ready, in whole seconds: the median of the pods that say
// so. It is not known if fewer than half of the pods do.
func startOf(pods []*corev1.Pod, containers []string) (median time.Duration, known bool) {
	var all []time.Duration
	for _, pod := range pods {
		if took := startOfPod(pod, containers); took >= 0 && took <= longestStart {
			all = append(all, took)
		}
	}
	if len(all) == 0 || 2*len(all) < len(pods) {
		return 0, false
	}
	slices.Sort(all)
	return all[(len(all)-1)/2], true
}

// startOfPod counts from the first of the containers. It is negative if that is not known, as of a pod that was Ready before they started.
func startOfPod(pod *corev1.Pod, containers []string) time.Duration {
	const unknown time.Duration = -1
	took := unknown
	if !apps.IsTrue(pod, corev1.PodReady) {
		return unknown
	}
	for _, name := range containers {
		running := readiness.ContainerStatus(pod, name).State.Running
		if running == nil || running.StartedAt.IsZero() {
			return unknown
		}
		took = max(took, apps.Condition(pod, corev1.PodReady).LastTransitionTime.Sub(running.StartedAt.Time))
	}
	return took
}
