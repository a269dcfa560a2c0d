package controllerrevisions

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
)

// bypass is what is known of pods that were created in the middle of the update without a webhook being asked: they have neither a gate nor
// inplace.AnnotationAdmitted. So no webhook was asked about the deletion of the pod before it either. That deletion alone shows nothing,
// since every user may delete a pod.
type bypass struct {
	// first and last are the first and the last of these pods; nil if there are none.
	first, last *corev1.Pod
	now         time.Time
}

// bypassed finds the pods that show a bypass. Where the native controller replaces no pod, there is none.
func (o *observed) bypassed() bypass {
	b := bypass{now: o.seen.Now}
	if !o.updating() || o.update.Workload.Kept != nil {
		return b
	}
	begun := revisions.StartedAt(o.updateRevision.Labels[inplace.LabelUpdating])
	for _, m := range o.live {
		created := m.Pod.CreationTimestamp
		if forgotten, _ := inplace.Since(created.Time, podstate.BypassMemory, b.now); forgotten || admitted(m.Pod) || !created.After(begun) {
			continue
		}
		if b.first == nil || created.Before(&b.first.CreationTimestamp) {
			b.first = m.Pod
		}
		if b.last == nil || b.last.CreationTimestamp.Before(&created) {
			b.last = m.Pod
		}
	}
	return b
}

// admitted reports whether a webhook was asked about the creation of the pod.
func admitted(pod *corev1.Pod) bool {
	return readiness.Gated(pod) || pod.Annotations[inplace.AnnotationAdmitted] != ""
}

// again reports whether there was more than one bypass; there may have been only one if such pods were created within a short time.
func (b bypass) again() bool {
	return b.first != nil && b.last.CreationTimestamp.Sub(b.first.CreationTimestamp.Time) > podstate.QuietAfterBypass
}

// over reports whether only Stayput replaces pods, as far as is known by now; if that is only a matter of time, it returns how long it
// takes.
func (b bypass) over() (bool, time.Duration) {
	if b.last == nil {
		return true, 0
	}
	return inplace.Since(b.last.CreationTimestamp.Time, podstate.QuietAfterBypass, b.now)
}

// String says in one clause what shows the bypass; empty if nothing does.
func (b bypass) String() string {
	if b.last == nil {
		return ""
	}
	return "no webhook was asked about the creation of pod " + b.last.Name
}
