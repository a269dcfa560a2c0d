package engine

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/disruption"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// Snapshot is what was observed of a workload besides itself and its revisions. No object may be older than the caller's own last write to
// it: a step is guarded by the version of its own object only, but depends on several objects.
type Snapshot struct {
	// Pods are those that the workload controls, directly or by its ReplicaSets, including terminating ones.
	Pods []*corev1.Pod
	// Nodes are the nodes of the pods as far as they are known; for a DaemonSet all nodes of the cluster, nil if the caller knows none. Then
	// every pod counts as being on a node that should run it.
	Nodes []*corev1.Node
	// Pull is what is known of images on nodes.
	Pull prepull.Pulling
	// DryRun is the result of the dry run of the update revision. A plan that needs one and has none asks for it.
	DryRun dryrun.Result
	// OldDryRun is the result of the dry run of an old revision to which partially patched pods go back. If it has Unknown and no
	// UpdateRevision, no dry run can be made.
	OldDryRun dryrun.Result
	Mode      inplace.Mode
	Settings  inplace.Settings
	Rules     inplace.Rules
	Now       time.Time
	// Obstacle is why the update cannot be made in place, if it waits instead of falling back; nil if it does not. Only FallBack sets it.
	Obstacle *inplace.Reason
	// Fallback is the workload's persisted fallback; the zero Fallback if it has none.
	Fallback revisions.Fallback
	// Unread is why only an outline of some revisions or pods was read; empty if all were read completely.
	Unread string
	// Endpoints are those of the pods that serve or are out of service, with the time since when no EndpointSlice offers the pod. Only a
	// caller that carries out the steps of a plan needs them, as it does TakenOut and Batches.
	Endpoints podstate.Endpoints
	TakenOut  TakenOut
	// Batches has since when steps are deferred. If nil, nothing is deferred.
	Batches steps.Batches
	// Disruption are the PodDisruptionBudgets that count; none unless the settings ask for them. Only a caller that carries out steps, or
	// says what pods wait for, needs them.
	Disruption disruption.Seen
	// Share is what limits on how many pods of all workloads restart at a time leave for this one; nil if there are none. Only a caller that
	// carries out steps knows it.
	Share *concurrency.Share
}

// Wrote takes over what the API server returned for the caller's own writes to pods, by UID, so that the next plan from the same snapshot
// knows of them.
func (s *Snapshot) Wrote(pods map[types.UID]*corev1.Pod) {
	s.Pods = slices.Clone(s.Pods) // the list may be another's
	for i, seen := range s.Pods {
		s.Pods[i] = cmp.Or(pods[seen.UID], seen)
	}
}

// Unmanaged returns why Stayput leaves the workload alone, whatever the update is; nil if it does not.
func (s Snapshot) Unmanaged(w Workload) *inplace.Reason {
	switch {
	case !s.Mode.Manages():
		return s.Mode.Reason()
	case w.GetDeletionTimestamp() != nil:
		return &inplace.Reason{Code: inplace.CodeDeleting, Message: "the " + w.Kind + " is being deleted"}
	case s.Unread != "":
		return &inplace.Reason{Code: inplace.CodeTooLarge, Message: s.Unread}
	}
	return inplace.NativeGroups(w.Template.Decoded().Labels)
}

// instead returns the partition of an update that waits instead of falling back for that reason; false if it falls back, or if the native
// controller replaces no pod.
func (s Snapshot) instead(w Workload, why inplace.Reason) (inplace.Partition, bool) {
	unasked := why.Code == inplace.CodeNativeRollout && !w.accepted() // the namespace may have just been labelled
	if w.Kept != nil || unasked {
		return s.Settings.Partition, false
	}
	return s.Settings.Partition.Instead(why, s.Mode, w.Replicas)
}

// Awaits reports whether an update that cannot be made in place, for these reasons, waits: its edit was accepted as one in place. Settings
// or revisions have changed since.
func (s Snapshot) Awaits(w Workload, reasons inplace.Reasons) bool {
	if len(reasons) == 0 || !w.accepted() {
		return false
	}
	_, waits := s.instead(w, reasons[0])
	return waits
}

// WhyFellBack returns that the update has a persisted fallback; nil if it has none.
func (s Snapshot) WhyFellBack(w Workload) *inplace.Reason {
	if s.Fallback.Hash == "" || s.Fallback.Hash != w.Template.Hash() {
		return nil
	}
	return &inplace.Reason{Code: inplace.CodeFellBack, Message: "the update fell back to the " + w.Kind + " controller"}
}

// DecideEdit returns what an edit of the template does, with so many surge pods. It asks for the decision on the whole workload only where
// the edit itself can be made in place.
func (s Snapshot) DecideEdit(before apps.Template, w Workload, surge int, decision func() steps.Decision) steps.EditDecision {
	change := edit.Compare(before, w.Template, s.Rules)
	decided := steps.EditDecision{Change: change, Reasons: w.NotInPlace(change.Reasons), Partition: s.Settings.Partition}
	groups := inplace.NativeGroups(w.Template.Decoded().Labels)
	switch {
	case !s.Mode.Manages():
		decided.Reasons = inplace.Reasons{*s.Mode.Reason()}
	case groups != nil: // also with the edit that sets a partition for all pods, and leaves nothing to decide
		decided.Reasons = w.NotInPlace(inplace.Reasons{*groups})
	case change.InPlace():
		decided.Reasons = decision().Reasons
	}
	decided.Hooks = steps.AboutHooks(s.Settings.InForce(w), change, s.Settings.PreRestartTimeout)
	decided.Forbidden = !decided.InPlace() && s.Mode == inplace.ModeInPlaceOnly
	if decided.Change.Restarts() {
		decided.Budget = disruption.Never(s.Disruption.Budgets, before.Decoded().Labels, surge)
	}
	return decided
}
