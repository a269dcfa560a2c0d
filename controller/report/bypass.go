package report

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
)

// Webhooks fail open, so where the API server does not reach them everything seems well, but for updates that are native. Only the leader
// can tell: a native write that should have been held was not.
//
// In the middle of an update the objects show it (steps.Plan.Bypassed). A rollout that nobody of us has begun looks the same whether its
// writes were not held, or the namespace got its label after them. That of a workload which this leader saw at rest before, under
// management, is the former.

// bypassed tells once per update of a native write that a webhook should have held and did not.
func (n news) bypassed() {
	known := n.current()
	switch {
	case known != nil && n.plan.Bypassed != "" && !known.told[EventBypassed]:
		known.told[EventBypassed] = true
		n.tellBypass(n.plan.Bypassed)
	case n.guard():
		n.tellBypass(n.plan.Decision.Reasons.String())
	}
}

func (n news) tellBypass(why string) {
	n.metrics.bypassed.WithLabelValues(n.kind.Workload.Name).Inc()
	n.event(n.Workload, corev1.EventTypeWarning, EventBypassed,
		"A write of the "+n.kind.Workload.Name+" controller was not held, so the API server may not reach Stayput's webhooks: "+why)
}

// guard remembers whether the next rollout of the workload is to be held from its first write on, and since when it has been; zero if none
// is under way. It reports whether that has just turned out not to have happened.
func (n news) guard() (bypassed bool) {
	decision := n.plan.Decision
	since, guarded := n.guarded[n.key]
	switch {
	case decision.Held && guarded && since.IsZero():
		n.guarded[n.key] = n.Now
	case decision.Held:
	case n.Mode.Manages() && len(decision.Reasons) == 0:
		n.guarded[n.key] = time.Time{}
	default:
		delete(n.guarded, n.key)
		return guarded && firstCode(decision.Reasons, "") == inplace.CodeNativeRollout && (since.IsZero() || revisions.HoldLasts(nil, since, n.Now))
	}
	return false
}
