package controllerrevisions

import (
	"fmt"
	"slices"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// Rollout is one workload of such a kind with everything on which an update of it depends. As for a deployments.Rollout, no object may be
// older than the caller's own last write to it.
type Rollout struct {
	Kind Kind
	// Revisions are those that the workload controls.
	Revisions []*apps.ControllerRevision
	// Seen is what was observed besides.
	Seen engine.Snapshot
	// HeldSince is the time from which on the caller has held writes of this update; zero if it has not.
	HeldSince time.Time
}

// Decision returns whether Stayput makes the update, or the part of it that comes first.
func (r Rollout) Decision() steps.Decision {
	if engine.Untouched(&r) {
		return steps.NativeDecision(r.Seen.Mode)
	}
	return r.observed().update.Decided
}

// Plan returns the next steps. It has none for the status: the native controllers write it although their DELETEs are refused
// (syncDaemonSet in pkg/controller/daemon/daemon_controller.go, performUpdate in pkg/controller/statefulset/stateful_set_control.go).
func (r Rollout) Plan() steps.Plan {
	if engine.Untouched(&r) {
		return steps.NativePlan(r.Seen.Mode)
	}
	return engine.Plan(r.begin)
}

// begin implements engine.Begin.
func (r Rollout) begin(obstacle *inplace.Reason) engine.Planner {
	r.Seen.Obstacle = obstacle
	return planner{r.observed()}
}

// FallBack returns the plan by which the update falls back to the native controller.
func (r Rollout) FallBack(why inplace.Reason) steps.Plan { return engine.FallBack(r.begin, why) }

// Nudge returns the steps that nudge the native controller in the middle of an update; none if there is nothing to update.
func (r Rollout) Nudge() []steps.Step {
	if engine.Untouched(&r) {
		return nil
	}
	return r.observed().nudgeOnce()
}

// PodProgress returns what users need to know of each live pod, in the order of the kind.
func (r Rollout) PodProgress() []podstate.PodProgress {
	return r.observed().update.PodProgress(slices.ContainsFunc(r.Revisions, revisions.Updating))
}

// partition returns the partition budget. Where the spec has a partition of its own, the label says nothing, but a maintenance window does.
func (r Rollout) partition() inplace.Partition {
	partition := r.Seen.Settings.Partition
	if r.Kind.Traits().OwnPartition != "" {
		partition.Value = ""
	}
	return partition
}

// Stage returns how far the partition lets the update go, and whether it is there.
func (r Rollout) Stage() steps.Stage {
	preview, o := r.Kind.Preview(r.partition().Alone()), r.observed()
	phase, _ := o.update.AtStage(true)
	return steps.Stage{Kept: preview.AtPartition, Pods: preview.Pods, Reached: phase == steps.PhasePartition}
}

// Stalled returns why the update makes no progress by itself, one clause; empty if it may. There is no progress deadline. So it has stalled
// as soon as a kubelet has failed to start a container, or to pull an image, and waits before it tries again.
func (r Rollout) Stalled() string {
	o := r.observed()
	for _, m := range o.live {
		if failing := m.Failing(); failing != "" {
			return "pod " + m.Pod.Name + " waits for " + failing
		}
	}
	return o.seen.Pull.Failing()
}

// Images counts the nodes that have the new images, where a partition keeps all pods.
func (r Rollout) Images() steps.Images { return r.observed().prePull().Images() }

// Workload implements engine.Rollout.
func (r Rollout) Workload() engine.Object { return r.Kind.Workload().Object }

// Holders implements engine.Rollout.
func (r Rollout) Holders() []engine.Object { return engine.ObjectsOf(r.Revisions) }

// Snapshot implements engine.Rollout.
func (r *Rollout) Snapshot() *engine.Snapshot { return &r.Seen }

// Unfinished reports whether some pod that stays where it is does not have the update revision's identity yet.
func (r Rollout) Unfinished() bool { return r.observed().unfinished() }

// Done implements engine.Rollout.
func (r Rollout) Done() bool { return !r.Unfinished() && r.Kind.Finished() }

// Overdue implements engine.Rollout. These workloads have no progress deadline.
func (r Rollout) Overdue() bool { return false }

// Fresh implements engine.Rollout.
func (r Rollout) Fresh() bool {
	return !slices.ContainsFunc(r.observed().live, func(m *Pod) bool { return m.Updated })
}

// WhyNative returns why no update of the workload is made in place, whatever its templates and pods are; nil if one may be.
func (r Rollout) WhyNative() *inplace.Reason { return r.observed().whyNative() }

// TemplateHash returns the hash by which a persisted fallback names the update: see revisions.Fallback.
func (r Rollout) TemplateHash() string { return r.Kind.Workload().Template.Hash() }

// DecideEdit returns what an edit of the template does to pods. The template before is the one before the edit.
func (r Rollout) DecideEdit(before apps.Template) steps.EditDecision {
	r.Seen.Settings.Partition = r.partition()
	decided := r.Seen.DecideEdit(before, r.Kind.Workload(), 0, r.Decision)
	if revision := r.UpdateRevision(); revision != nil {
		decided.Undo = revisions.Undoes(revision, r.Revisions)
	}
	return decided
}

// Preview returns what happens to the pods if the workload, which is not stored yet, replaces the one with the template before. It needs
// neither pods nor nodes.
func (r Rollout) Preview(before apps.Template) steps.Preview {
	preview := r.Kind.Preview(r.partition())
	preview.EditDecision = r.DecideEdit(before)
	preview.AtATime = min(preview.AtATime, preview.Moving())
	preview.MinReadySeconds = r.Kind.Workload().MinReadySeconds
	return preview
}

// Progress returns a text that is another one when Stayput has moved a pod, or the user has edited the workload.
func (r Rollout) Progress() string {
	moved := fmt.Sprint(r.Kind.Workload().GetGeneration())
	for _, pod := range slices.SortedFunc(slices.Values(r.Seen.Pods), r.Kind.Compare) {
		moved += fmt.Sprint(" ", pod.Name, pod.UID, pod.Labels[inplace.LabelRevisionHash], readiness.Out(pod))
	}
	return moved
}

// OutOfService returns a text that is another one when a pod was taken out of service or came back, or the user has edited the workload.
func (r Rollout) OutOfService() string {
	var names []string
	for _, pod := range r.Seen.Pods {
		if readiness.Out(pod) {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return fmt.Sprint(r.Kind.Workload().GetGeneration(), names)
}
