package readiness

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// A pod that has restarted can be Ready for a moment and then not Ready, although nothing is wrong with it. There are two causes.
// First, a kubelet's sync that began before the readiness probe had answered reports its old result afterwards: between
// UpdatePodStatus, which asks for the probe's result, and SetPodStatus, which writes what was known before
// (pkg/kubelet/prober/prober_manager.go, pkg/kubelet/kubelet.go). Second, the Failure with which every probe begins may be received
// after the Success (results.Manager in doProbe, pkg/kubelet/prober/worker.go).
//
// The next pod would be taken out of service while this one is not Ready either. So a Ready that is ahead of its kubelet, one that the
// kubelet has said only just now, and one that startup probes may revoke, count only after they have lasted. A container without a
// readiness probe is ready as long as it runs, and nothing is revoked.
//
// The update of a Deployment does not end before that either: while its marks are there, no status says that the rollout is complete
// (Planner.end in inplace/deployments). Other kinds have no status that Stayput could hold.

// Lasts is how long a Ready that its kubelet may revoke must be seen at least: several times the interval between two writes of a
// kubelet, which is 15 to 25 ms where nothing else is busy. If nothing reports Ready ahead of kubelets, native controllers act at once on
// the first Ready.
const Lasts = 60 * time.Millisecond

// LastsWhere returns how long it must be seen where a write takes that long: as long as five writes. A kubelet that revokes it needs one,
// and its other writes may come before.
func LastsWhere(writeTakes time.Duration) time.Duration {
	return min(LastsUnconfirmed, max(Lasts, 5*writeTakes))
}

// LastsUnconfirmed is how long it must be seen where no pod may be unavailable, and its kubelet does not say Ready itself. On a busy node,
// a sync that began before the probe had answered is written later than Lasts. The kubelet says Ready with its next sync, which waits for
// the next list of containers: pkg/kubelet/pleg/generic.go makes one each second. One that does not in this time tells nothing. A
// kubelet revokes no Ready that has lasted this long.
const LastsUnconfirmed = 3 * time.Second

// Wait is how long a Ready must be seen: one that is Ahead of its kubelet, and one that its kubelet has Said just now.
type Wait struct{ Ahead, Said time.Duration }

// Ahead is when the caller first saw each pod Ready whose kubelet may revoke that, by UID.
type Ahead map[types.UID]time.Time

// Next returns what the caller has seen now, and when it first saw it.
func (a Ahead) Next(pods []*corev1.Pod, now time.Time) Ahead {
	next := Ahead{}
	for _, pod := range pods {
		if !mayRevoke(pod, now) {
			continue
		}
		next[pod.UID] = cmp.Or(a[pod.UID], now)
	}
	return next
}

// IsAhead reports whether the API server says that the pod is Ready before its kubelet does.
func IsAhead(pod *corev1.Pod) bool {
	return apps.IsTrue(pod, corev1.PodReady) && apps.Condition(pod, corev1.PodReady).Message == MessageAhead
}

// mayRevoke reports whether the pod's kubelet may still revoke that the pod is Ready: it has not said so itself, or has only just.
func mayRevoke(pod *corev1.Pod, now time.Time) bool {
	justNow := func() bool {
		return now.Before(apps.Condition(pod, corev1.PodReady).LastTransitionTime.Add(LastsUnconfirmed))
	}
	return apps.IsTrue(pod, corev1.PodReady) && (IsAhead(pod) || justNow())
}

// Lasting reports whether the pod's Ready can be relied on, after it was seen for that long. If not, it returns when. If the caller has not
// seen the pod Ready before, what the kubelet said counts. Where the kubelet said nothing, the time of the condition counts. That time is
// by the kubelet's clock, which may be behind, and it has no fractions of a second.
func (a Ahead) Lasting(pod *corev1.Pod, wait Wait, now time.Time) (bool, time.Duration) {
	proved, left := ProvedStarted(pod, now)
	if !proved || !readinessProbed(pod) || !mayRevoke(pod, now) {
		return proved, left
	}
	first, seen := a[pod.UID]
	switch ahead := IsAhead(pod); {
	case ahead && seen:
		return inplace.Since(first, wait.Ahead, now)
	case ahead:
		return inplace.Since(apps.Condition(pod, corev1.PodReady).LastTransitionTime.Add(time.Second), wait.Ahead, now)
	case seen:
		return inplace.Since(first, wait.Said, now)
	}
	return true, 0
}

// readinessProbed reports whether any container of the pod has a readiness probe. Of the init containers, only sidecars have one.
func readinessProbed(pod *corev1.Pod) bool {
	has := func(c corev1.Container) bool { return c.ReadinessProbe != nil }
	return slices.ContainsFunc(pod.Spec.Containers, has) || slices.ContainsFunc(pod.Spec.InitContainers, has)
}

// StartupProbed reports whether any container of the pod has a startup probe.
func StartupProbed(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.StartupProbe != nil })
}

// ProvedStarted reports whether no container can be ready only because its startup probe has not answered yet (see tooEarly). If
// one can, it returns when that ends.
func ProvedStarted(pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	if !StartupProbed(pod) || !startupUnproved(pod) {
		return true, 0
	}
	all, wait := true, time.Duration(0)
	for _, c := range pod.Spec.Containers {
		if status := ContainerStatus(pod, c.Name); c.StartupProbe != nil && status.RestartCount > 0 && status.State.Running != nil {
			one, left := inplace.Since(status.State.Running.StartedAt.Time, startupKnown(c), now)
			all, wait = all && one, max(wait, left)
		}
	}
	return all, wait
}
