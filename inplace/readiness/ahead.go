package readiness

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/times"
)

// A pod that has restarted can be Ready for a moment and not be so in the next, with nothing wrong in it. A sync of its kubelet that began before
// the readiness probe had answered says so after it: between UpdatePodStatus, which has the probe asked, and SetPodStatus, which writes what was
// known before (pkg/kubelet/prober/prober_manager.go, pkg/kubelet/kubelet.go). And the Failure with which every probe begins may be heard of after
// the Success (results.Manager in doProbe, pkg/kubelet/prober/worker.go). As long as the kubelet itself said Ready a second or two later, nobody
// saw it. So a Ready that is ahead of its kubelet, and one that startup probes may take back, count only when they have lasted: the next pod
// would be taken out of service while this one is, too. Without a readiness probe a container is ready as long as it runs, and nothing is taken back.

// Lasts is how long a Ready that is ahead of its kubelet must be seen: several times what is between two writes of a kubelet. Where nobody reports
// ahead of kubelets, native controllers build upon the first of them at once.
const Lasts = 100 * time.Millisecond

// Ahead is since when the caller has seen pods Ready that are ahead of their kubelets, by UID.
type Ahead map[types.UID]time.Time

// Next is what the caller has seen now, and when it saw it first.
func (a Ahead) Next(pods []*corev1.Pod, now time.Time) Ahead {
	next := Ahead{}
	for _, pod := range pods {
		if since, known := a[pod.UID]; IsAhead(pod) && known {
			next[pod.UID] = since
		} else if IsAhead(pod) {
			next[pod.UID] = now
		}
	}
	return next
}

// IsAhead reports whether the API server says that the pod is Ready before its kubelet does.
func IsAhead(pod *corev1.Pod) bool {
	return conditions.IsTrue(pod, corev1.PodReady) && conditions.Condition(pod, corev1.PodReady).Message == MessageAhead
}

// Lasting reports whether it may be built upon that the pod is Ready; if not, when. Its time is by its kubelet's clock, which may be behind, and counts only
// where nothing was seen: it has no fractions.
func (a Ahead) Lasting(pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	if proved, wait := ProvedStarted(pod, now); !proved || !IsAhead(pod) || !readinessProbed(pod) {
		return proved, wait
	}
	first, seen := a[pod.UID]
	if !seen {
		first = conditions.Condition(pod, corev1.PodReady).LastTransitionTime.Add(time.Second)
	}
	return times.Since(first, Lasts, now)
}

// readinessProbed reports whether some container of the pod has a readiness probe; of init containers only sidecars have one.
func readinessProbed(pod *corev1.Pod) bool {
	has := func(c corev1.Container) bool { return c.ReadinessProbe != nil }
	return slices.ContainsFunc(pod.Spec.Containers, has) || slices.ContainsFunc(pod.Spec.InitContainers, has)
}

// StartupProbed reports whether some container of the pod has a startup probe.
func StartupProbed(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.StartupProbe != nil })
}

// ProvedStarted reports whether no container can still be ready only for want of an answer of its startup probe (see tooEarly); if not, when that
// will be so.
func ProvedStarted(pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	if !StartupProbed(pod) || !tooEarly(pod) {
		return true, 0
	}
	all, wait := true, time.Duration(0)
	for _, c := range pod.Spec.Containers {
		if status := ContainerStatus(pod, c.Name); c.StartupProbe != nil && status.RestartCount > 0 && status.State.Running != nil {
			one, left := times.Since(status.State.Running.StartedAt.Time, startupKnown(c), now)
			all, wait = all && one, max(wait, left)
		}
	}
	return all, wait
}
