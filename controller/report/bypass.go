package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/revisions"
)

// The webhooks fail open. If the API server does not reach them, nothing seems wrong, but updates are native. Only the
// leader can notice: a native write that a webhook should have held was not held.
//
// In the middle of an update the objects show it (steps.Plan.Bypassed). A rollout that Stayput has not begun looks the
// same in two cases: its writes were not held, or the namespace got its label after these writes. If this leader saw
// the workload before, managed and without a rollout, it is the first case.

// bypassed records, once for each update, that a webhook should have held a native write and did not.
func (n news) bypassed() {
	known := n.current()
	switch {
	case known != nil && n.plan.Bypassed != "" && known.once(EventBypassed):
		n.tellBypass(n.plan.Bypassed)
	case n.guard():
		n.tellBypass(n.plan.Decision.Reasons.String())
	}
}

func (n news) tellBypass(why string) {
	n.metrics.bypassed.WithLabelValues(n.namespace, n.kind.Workload.Name).Inc()
	n.tell(EventBypassed,
		"A write of the "+n.kind.Workload.Name+" controller was not held, so the API server may not reach Stayput's webhooks: "+why+n.scaler())
}

// scaler says which client has scaled a ReplicaSet, as the API server names it in its answer to the write that notes this; empty if that is
// not known. The cache does not keep managedFields.
func (n news) scaler() string {
	for _, w := range n.writes {
		before, is := w.Before.(*apps.ReplicaSet)
		if !is || !scaledByAnother(before) {
			continue
		}
		for _, entry := range w.After.GetManagedFields() {
			other := entry.Manager != string(write.FieldOwner) && entry.Subresource != "status" && entry.FieldsV1 != nil
			if other && strings.Contains(entry.FieldsV1.GetRawString(), `"f:replicas":`) {
				return fmt.Sprintf(": %s has scaled %s", entry.Manager, before.Name)
			}
		}
	}
	return ""
}

// scaledByAnother reports whether the ReplicaSet has other replicas than Stayput gave it.
func scaledByAnother(rs *apps.ReplicaSet) bool {
	given, marked := rs.Labels[inplace.LabelReplicas]
	return marked && rs.Spec.Replicas != nil && given != strconv.Itoa(int(*rs.Spec.Replicas))
}

// guard remembers whether the next rollout of the workload has to be held from its first write on, and since when it is
// held; zero if there is no rollout. It reports whether a rollout has just turned out not to have been held.
func (n news) guard() (bypassed bool) {
	decision := n.plan.Decision
	since, guarded := n.guarded[n.key]
	switch {
	case decision.Held && guarded && since.IsZero():
		n.guarded[n.key] = n.seen.Now
	case decision.Held:
	case n.seen.Mode.Manages() && len(decision.Reasons) == 0:
		n.guarded[n.key] = time.Time{}
	default:
		delete(n.guarded, n.key)
		return guarded && firstCode(decision.Reasons, "") == inplace.CodeNativeRollout &&
			(since.IsZero() || revisions.HoldLasts(nil, since, n.seen.Now))
	}
	return false
}
