package controllerrevisions

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// Kind is what differs between the kinds of workloads whose pods name their revision in a label.
type Kind interface {
	// Workload returns what every plan needs of the workload.
	Workload() engine.Workload
	// Strategy returns why the workload's own strategy excludes updates in place; nil if it does not.
	Strategy() *inplace.Reason
	// PodLabel returns the value of the label controller-revision-hash on pods of the revision.
	PodLabel(revision *apps.ControllerRevision) string
	// Compare orders pods, as slices.SortFunc does. No event may change the order.
	Compare(a, b *corev1.Pod) int
	// Housekeeping returns why the native controller deletes the pod whatever its revision is; nil if it does not.
	Housekeeping(pod *corev1.Pod) *inplace.Reason
	// Reachable reports whether the kubelet of the pod's node would act on a patch. Otherwise the pod would not be what its label says, for a
	// long time.
	Reachable(pod *corev1.Pod) bool
	// Kept reports whether the native controller leaves the pod as it is although its revision is another one than the update revision.
	Kept(pod *corev1.Pod) bool
	// Drains reports whether pods with a gate are taken out of service before they are patched. Gates reports whether every new pod has one.
	Drains() bool
	Gates() bool
	// Budget returns how many more of these pods may become unavailable.
	Budget(pods []*Pod) int
	// Next returns those of the pods without the update revision that go on, or begin if the partition and the budget allow it, in that order.
	Next(pending []*Pod, budget int) []*Pod
	// ReplacementWaits returns why the native controller may not replace the pod now, which cannot be updated in place; empty if it may.
	ReplacementWaits(v *Planner, m *Pod) string
	// WatchesRevisions reports whether an event of a ControllerRevision makes the native controller look at its workload. If not, an event of
	// a pod does.
	WatchesRevisions() bool
	// ReachingPods returns the part of a template's change that new pods show, where the native controller does not pass on the template as
	// it is.
	ReachingPods(change edit.Change) edit.Change
	// NewPod returns what the native controller would create in place of the pod, as JSON.
	NewPod(updateRevision *apps.ControllerRevision, instead *corev1.Pod) json.RawMessage
}

// Planner is what one plan derives from a workload of such a kind, and the plan as it is built.
type Planner struct {
	Update engine.Update
	plan   *steps.PlanBuilder
	kind   Kind
	seen   *engine.Snapshot
	// UpdateRevision is nil as long as the native controller has not created it.
	UpdateRevision *apps.ControllerRevision
	// Owned are the revisions that the workload controls.
	Owned []*apps.ControllerRevision
	// Live are the pods in the order of their kind: see Kind.Compare.
	Live  []*Pod
	marks map[*apps.ControllerRevision]marks
	// revisions are the revisions by the label of their pods, each read once. Wanted are the containers that the workload's template asks for.
	revisions map[string]*revision
	wanted    []corev1.Container
}

// Pod is a live pod.
type Pod struct {
	podstate.State
	// Housekeeping is why the native controller deletes the pod whatever its revision is; nil if it does not.
	Housekeeping *inplace.Reason
	// revision is the one that the pod was created from or last patched to; nil if it is gone.
	revision *revision
}

// revision is a ControllerRevision with its decoded template.
type revision struct {
	object     *apps.ControllerRevision
	template   apps.Template
	containers []corev1.Container
	// change is the change from its template to the workload's.
	change edit.Change
}

// marks are the values of the labels that Stayput writes on a ControllerRevision.
type marks struct{ updating, renewed, current string }

// NewPlanner returns a planner that has planned nothing yet.
func NewPlanner(kind Kind, owned []*apps.ControllerRevision, seen *engine.Snapshot) *Planner {
	workload := kind.Workload()
	v := &Planner{
		Update: engine.NewUpdate(workload, seen), kind: kind, seen: seen, Owned: owned,
		UpdateRevision: UpdateRevision(owned, workload.Template, kind.PodLabel), wanted: edit.Living(&workload.Template.Decoded().Spec),
		marks: map[*apps.ControllerRevision]marks{}, revisions: map[string]*revision{},
	}
	v.plan, v.Update.NewPods = v.Update.Plan, seen.DryRun.Of(v.updateUID(), workload.Template, v.wanted)
	for _, each := range owned {
		v.marks[each] = marks{
			updating: each.Labels[inplace.LabelUpdating], current: each.Labels[inplace.LabelCurrent],
		}
	}
	for _, pod := range slices.SortedFunc(slices.Values(seen.Pods), kind.Compare) {
		if readiness.Live(pod) {
			m := v.Pod(pod)
			v.Live, v.Update.States = append(v.Live, m), append(v.Update.States, &m.State)
		}
	}
	v.Update.Decided = v.decide()
	v.Update.Partition = podstate.PartitionBudgetOf(seen.Settings.Partition, max(workload.Replicas, len(v.Live)), v.Update.Pods())
	for _, m := range v.Live {
		m.AtPartition = m.AtPartition || m.Kept
	}
	return v
}

// Base implements engine.Planner.
func (v *Planner) Base() *engine.Update { return &v.Update }

// UpdateRevision returns the revision with that template. If there are several, it returns the newest, as natively: constructHistory and
// dedupCurHistories in pkg/controller/daemon/update.go, getStatefulSetRevisions in pkg/controller/statefulset/stateful_set_control.go. It
// returns nil as long as the native controller has created none. PodLabel is that of the Kind; a revision without one is not the
// controller's.
func UpdateRevision(
	owned []*apps.ControllerRevision, template apps.Template, podLabel func(*apps.ControllerRevision) string,
) *apps.ControllerRevision {
	newestFirst := slices.SortedFunc(slices.Values(owned), func(a, b *apps.ControllerRevision) int {
		if a.Revision != b.Revision {
			return int(b.Revision - a.Revision)
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, revision := range newestFirst {
		if podLabel(revision) != "" && revision.IsOf(template) {
			return revision
		}
	}
	return nil
}

func (v *Planner) updateUID() types.UID {
	if v.UpdateRevision == nil {
		return ""
	}
	return v.UpdateRevision.UID
}

// Pod returns the pod as the plan sees it, whether it is one of the snapshot or not.
func (v *Planner) Pod(pod *corev1.Pod) *Pod {
	m := &Pod{revision: v.revisionOf(pod), Housekeeping: v.kind.Housekeeping(pod)}
	m.State = v.Update.StateOf(pod, v.origin(pod, m.revision))
	m.Kept = !m.Updated && !m.PartiallyPatched() && v.kind.Kept(pod)
	return m
}

func (v *Planner) origin(pod *corev1.Pod, revision *revision) podstate.PodRevision {
	from := podstate.PodRevision{Updated: v.isUpdated(pod), ByLabel: true, Undrained: !v.kind.Drains()}
	if v.UpdateRevision != nil {
		from.UpdateHash = v.kind.PodLabel(v.UpdateRevision)
	}
	if revision == nil {
		from.Change = &edit.Change{Reasons: inplace.Reasons{
			{Code: inplace.CodeRevisionGone, Message: "the ControllerRevision of pod " + pod.Name + " is gone"},
		}}
	} else {
		from.Revision, from.TemplateContainers, from.NewPods.Containers = revision.object.Name, revision.containers, revision.containers
		from.Change, from.Current = &revision.change, v.isCurrent(revision.object)
	}
	return from
}

// revisionOf finds the pod's revision by its label, or by its mark if the pod is partially patched.
func (v *Planner) revisionOf(pod *corev1.Pod) *revision {
	hash := pod.Labels[inplace.LabelRevisionHash]
	if podstate.HasPartialHash(pod) {
		hash = readiness.MoveOf(pod).Hash
	}
	found, known := v.revisions[hash]
	if !known {
		found = v.readRevision(hash)
		v.revisions[hash] = found
	}
	return found
}

func (v *Planner) readRevision(hash string) *revision {
	for _, each := range v.Owned {
		if hash == "" || v.kind.PodLabel(each) != hash {
			continue
		}
		template, err := each.Template()
		if err != nil {
			return nil // a template that does not decode counts as gone
		}
		return &revision{object: each, template: template, containers: edit.Living(&template.Decoded().Spec),
			change: v.changeFrom(template)}
	}
	return nil
}

// changeFrom returns what pods of that template need to become those of the workload's template.
func (v *Planner) changeFrom(template apps.Template) edit.Change {
	return v.kind.ReachingPods(edit.Compare(template, v.Update.Workload.Template, v.seen.Rules))
}

// decide decides whether Stayput holds the update: it does as long as some pod can be updated in place. Pods that cannot are replaced after
// those. If both controllers took pods down at the same time, neither would know how many the other takes down.
func (v *Planner) decide() steps.Decision {
	decision := steps.Decision{UpdateRevision: steps.RevisionOf(v.UpdateRevision)}
	if !v.Unfinished() {
		return decision
	}
	if reason := v.WhyNative(); reason != nil {
		decision.Reasons = inplace.Reasons{*reason}
		return decision
	}
	inPlace, told := false, map[*revision]bool{}
	for m := range v.pending() {
		if m.Needs().InPlace() {
			inPlace = true
		} else if !told[m.revision] {
			told[m.revision] = true
			decision.Reasons = decision.Reasons.And(m.Needs().Reasons...)
		}
	}
	decision.Held = inPlace && len(decision.Reasons) == 0 || v.someInPlace()
	return decision
}

// WhyNative returns why the update cannot be made in place, whatever the templates are; nil if it can.
func (v *Planner) WhyNative() *inplace.Reason {
	return cmp.Or(v.seen.Unmanaged(v.Update.Workload), v.kind.Strategy(), v.seen.WhyFellBack(v.Update.Workload))
}

// pending yields the pods that stay where they are and do not have the update revision's identity, though the native controller wants it.
func (v *Planner) pending() iter.Seq[*Pod] {
	return func(yield func(*Pod) bool) {
		for _, m := range v.Live {
			if m.Housekeeping == nil && !m.Updated && !m.Kept && !yield(m) {
				return
			}
		}
	}
}

// isUpdated reports whether the pod has the update revision's identity.
func (v *Planner) isUpdated(pod *corev1.Pod) bool {
	return v.UpdateRevision != nil && pod.Labels[inplace.LabelRevisionHash] == v.kind.PodLabel(v.UpdateRevision)
}

// Unfinished reports whether some pod that stays where it is does not have the update revision's identity yet.
func (v *Planner) Unfinished() bool {
	for range v.pending() {
		return true
	}
	return false
}

// someInPlace reports whether some pod can be updated in place, and the kubelet of its node is reachable.
func (v *Planner) someInPlace() bool {
	for m := range v.pending() {
		if m.Needs().InPlace() && v.kind.Reachable(m.Pod) {
			return true
		}
	}
	return false
}

// OthersFirst reports whether some pod is to be updated in place before any pod is replaced. A replacement does not wait for pods at the
// partition. Nor does a pod whose resize is infeasible wait for another pod that must be replaced: that could last for ever.
func (v *Planner) OthersFirst() bool {
	for m := range v.pending() {
		if m.WhyReplaced() == nil && !m.AtPartition && v.kind.Reachable(m.Pod) {
			return true
		}
	}
	return false
}
