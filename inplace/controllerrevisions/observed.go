package controllerrevisions

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// observed is what a plan derives from a Rollout, once. The stages of the plan only read it, and add their steps to the plan of the update.
type observed struct {
	kind   Kind
	seen   *engine.Snapshot
	update engine.Update
	// updateRevision is nil as long as the native controller has not created it.
	updateRevision *apps.ControllerRevision
	owned          owned
	revisions      reader
	// live are the live pods in the order of their kind, those that go last at the end: see Kind.Compare.
	live []*Pod
	// pending are the pods that stay where they are and do not have the update revision's identity, though the native controller wants it.
	pending []*Pod
}

// Pod is a live pod.
type Pod struct {
	podstate.State
	// Housekeeping is why the native controller deletes the pod whatever its revision is; empty if it does not.
	Housekeeping string
	// revision is the one that the pod was created from or last patched to; nil if it is gone.
	revision *revision
}

// observed looks at everything once, in the order in which one fact depends on another.
func (r Rollout) observed() *observed {
	r.Seen.Settings.Partition = r.partition()
	o := &observed{kind: r.Kind.On(&r.Seen), seen: &r.Seen, owned: r.Revisions, updateRevision: r.UpdateRevision()}
	workload := r.Kind.Workload()
	workload.Replicas = o.kind.Replicas()
	o.revisions = reader{owned: o.owned, kind: r.Kind, wanted: workload.Template, rules: r.Seen.Rules, read: map[string]*revision{}}
	o.update = engine.NewUpdate(workload, o.seen)
	o.update.NewPods = o.seen.DryRun.Of(o.updateUID(), workload.Template, edit.Living(&workload.Template.Decoded().Spec))
	o.addPods()
	o.update.Decided = o.decide()
	o.update.Partition = podstate.PartitionBudgetOf(o.update.PartitionNow(), max(workload.Replicas, len(o.live)), o.update.States)
	for _, m := range o.live {
		m.AtPartition = m.AtPartition || m.Kept
	}
	return o
}

func (o *observed) updateUID() types.UID {
	if o.updateRevision == nil {
		return ""
	}
	return o.updateRevision.UID
}

func (o *observed) addPods() {
	for _, pod := range o.update.InOrder(o.kind.Compare) {
		if !readiness.Live(pod) {
			continue
		}
		m := o.pod(pod)
		o.live, o.update.States = append(o.live, m), append(o.update.States, &m.State)
		if m.Housekeeping == "" && !m.Updated && !m.Kept {
			o.pending = append(o.pending, m)
		}
	}
}

// pod returns the pod as the plan sees it, whether it is one of the snapshot or not.
func (o *observed) pod(pod *corev1.Pod) *Pod {
	m := &Pod{revision: o.revisions.of(pod), Housekeeping: o.kind.Housekeeping(pod)}
	m.State = o.update.StateOf(pod, o.origin(pod, m.revision))
	m.Kept = !m.Begun() && o.kind.Kept(pod)
	return m
}

func (o *observed) origin(pod *corev1.Pod, revision *revision) podstate.PodRevision {
	from := podstate.PodRevision{ByLabel: true}
	if o.updateRevision != nil {
		from.UpdateHash = o.kind.PodLabel(o.updateRevision)
		from.Updated = pod.Labels[inplace.LabelRevisionHash] == from.UpdateHash
	}
	if revision == nil {
		from.Change = &edit.Change{Reasons: inplace.Reasons{
			{Code: inplace.CodeRevisionGone, Message: "the ControllerRevision of pod " + pod.Name + " is gone"},
		}}
	} else {
		from.Revision, from.TemplateContainers, from.NewPods.Containers = revision.object.Name, revision.containers, revision.containers
		change := revision.change
		replaced := cmp.Or(podstate.OnVirtualNode(o.update.NodesByName[pod.Spec.NodeName]), o.kind.Lacks(pod))
		if replaced != nil && !from.Updated {
			change.Reasons = slices.Clone(change.Reasons).And(*replaced)
		}
		from.Change, from.Current = &change, o.owned.isCurrent(revision.object)
	}
	return from
}

// decide decides whether Stayput holds the update: it does as long as some pod can be updated in place. Pods that cannot are replaced after
// those. If both controllers took pods down at the same time, neither would know how many the other takes down.
func (o *observed) decide() steps.Decision {
	decision := steps.Decision{UpdateRevision: steps.RevisionOf(o.updateRevision)}
	if !o.unfinished() {
		return decision
	}
	if reason := o.whyNative(); reason != nil {
		decision.Reasons = o.update.Workload.NotInPlace(inplace.Reasons{*reason})
		return decision
	}
	told := map[*revision]bool{}
	for _, m := range o.pending {
		if !inPlace(m) && !told[m.revision] {
			told[m.revision] = true
			decision.Reasons = decision.Reasons.And(m.Needs().Reasons...)
		}
	}
	decision.Reasons = o.update.Workload.NotInPlace(decision.Reasons)
	decision.Held = len(decision.Reasons) == 0 || slices.ContainsFunc(o.pending, o.reachableInPlace)
	decision.Waits = !decision.Held && o.seen.Awaits(o.update.Workload, decision.Reasons)
	decision.Held = decision.Held || decision.Waits
	return decision
}

// inPlace reports whether the pod can be updated in place.
func inPlace(m *Pod) bool { return m.Needs().InPlace() }

// reachableInPlace reports whether the pod can be updated in place, and the kubelet of its node is reachable.
func (o *observed) reachableInPlace(m *Pod) bool { return inPlace(m) && o.update.Reachable(m.Pod) }

// whyNative returns why the update cannot be made in place, whatever the templates are; nil if it can.
func (o *observed) whyNative() *inplace.Reason {
	return cmp.Or(o.seen.Unmanaged(o.update.Workload), o.kind.Strategy(), o.seen.WhyFellBack(o.update.Workload))
}

// unfinished reports whether some pod that stays where it is does not have the update revision's identity yet.
func (o *observed) unfinished() bool { return len(o.pending) > 0 }

// updating reports whether the update revision is marked.
func (o *observed) updating() bool {
	return o.updateRevision != nil && revisions.Updating(o.updateRevision)
}

// next returns the pods without the update revision that go on, or may begin: see Kind.Next. No pod waits for one that keeps its revision.
func (o *observed) next() []*Pod {
	pending := slices.DeleteFunc(slices.Clone(o.pending), o.stays)
	return o.kind.Next(pending, o.budget())
}

func (o *observed) budget() podstate.Budget {
	return podstate.BudgetOf(func(serves func(*podstate.State) bool) int { return o.kind.Budget(o.live, serves) })
}

// stays reports whether the pod, which cannot be updated in place, keeps its revision: no pod is replaced.
func (o *observed) stays(m *Pod) bool {
	why := m.WhyReplaced()
	return why != nil && (o.update.Workload.Kept != nil || o.update.Decided.Held && o.update.Awaits(*why))
}

func (o *observed) notResized() *inplace.Reason {
	return o.update.NotResized(true, podstate.ResizeDeadline(nil))
}

// prePull returns the pre-pull. Its pods are controlled by the update revision: if the workload were their controller, the native
// controller would take them for pods of its own (claimPods by ControllerRef in pkg/controller/controller_ref_manager.go), and delete them.
// Pods that are replaced natively, or whose nodes are unreachable, need none.
func (o *observed) prePull() *prepull.PrePull {
	return o.update.PrePull(1, "ControllerRevision", o.updateRevision, statesOf(o.pending, o.reachableInPlace))
}

// statesOf returns the states of those of the pods that are chosen.
func statesOf(pods []*Pod, chosen func(*Pod) bool) []*podstate.State {
	var all []*podstate.State
	for _, m := range pods {
		if chosen(m) {
			all = append(all, &m.State)
		}
	}
	return all
}
