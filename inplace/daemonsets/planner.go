package daemonsets

import (
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

// planner is what one Plan derives from a Rollout, and the plan as it is built: the same as deployments.Planner for a Deployment.
type planner struct {
	Rollout
	engine.Update
	updateRevision *apps.ControllerRevision // nil as long as the native controller has not created it
	pods           []*daemonPod             // by name: no event changes this order
	placed         map[string][]types.UID   // the live pods, by node
	places         places
	marks          map[*apps.ControllerRevision]marks
	// revisions are the revisions by hash, each read once. Wanted are the containers that the DaemonSet's template asks for.
	revisions map[string]*revision
	wanted    []corev1.Container
}

// daemonPod is a live pod of a DaemonSet.
type daemonPod struct {
	podstate.State
	// revision is the one that the pod was created from or last patched to; nil if it is gone.
	revision *revision
	// housekeeping is why the native controller deletes the pod whatever its revision is; nil if it does not.
	housekeeping *inplace.Reason
}

// revision is a ControllerRevision with its decoded template.
type revision struct {
	*apps.ControllerRevision
	template   apps.Template
	containers []corev1.Container
	// change is the change from its template to the DaemonSet's.
	change edit.Change
}

// marks are the values of the labels that Stayput writes on a ControllerRevision.
type marks struct{ updating, fallback, renewed, current string }

func (r Rollout) planner() *planner {
	v := &planner{
		Rollout: r, Update: engine.NewUpdate(r.workload(), &r.Seen), updateRevision: r.UpdateRevision(),
		wanted: edit.Living(&r.DaemonSet.Spec.Template.Decoded().Spec),
		places: placesOf(r.DaemonSet), placed: map[string][]types.UID{},
		marks: map[*apps.ControllerRevision]marks{}, revisions: map[string]*revision{},
	}
	updateRevision := types.UID("")
	if v.updateRevision != nil {
		updateRevision = v.updateRevision.UID
	}
	v.NewPods = r.Seen.DryRun.Of(updateRevision, r.DaemonSet.Spec.Template, v.wanted)
	for _, pod := range r.Seen.Pods {
		if readiness.Live(pod) {
			v.placed[pod.Spec.NodeName] = append(v.placed[pod.Spec.NodeName], pod.UID)
		}
	}
	for _, each := range r.Revisions {
		v.marks[each] = marks{
			updating: each.Labels[labelUpdating], fallback: each.Labels[inplace.LabelFallback], current: each.Labels[inplace.LabelCurrent],
		}
	}
	for _, pod := range slices.SortedFunc(slices.Values(r.Seen.Pods), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }) {
		if readiness.Live(pod) {
			m := v.daemonPod(pod)
			v.pods, v.States = append(v.pods, m), append(v.States, &m.State)
		}
	}
	v.Decided = v.decide()
	v.Workload.Replicas = v.desired()
	v.Partition = podstate.PartitionBudgetOf(v.Seen.Settings.Partition, max(v.Workload.Replicas, len(v.pods)), v.Pods())
	return v
}

func (r Rollout) workload() engine.Workload {
	return engine.Workload{Object: r.DaemonSet, Kind: "DaemonSet", Template: r.DaemonSet.Spec.Template,
		MinReadySeconds: r.DaemonSet.Spec.MinReadySeconds}
}

func (v *planner) daemonPod(pod *corev1.Pod) *daemonPod {
	m := &daemonPod{revision: v.revisionOf(pod), housekeeping: v.housekeeping(pod)}
	m.State = v.StateOf(pod, v.origin(pod, m.revision))
	return m
}

func (v *planner) origin(pod *corev1.Pod, revision *revision) podstate.PodRevision {
	from := podstate.PodRevision{Updated: v.isUpdated(pod), ByLabel: true}
	if v.updateRevision != nil {
		from.UpdateHash = v.updateRevision.Labels[inplace.LabelRevisionHash]
	}
	if revision == nil {
		from.Change = &edit.Change{Reasons: inplace.Reasons{
			{Code: inplace.CodeRevisionGone, Message: "the ControllerRevision of pod " + pod.Name + " is gone"},
		}}
	} else {
		from.Revision, from.TemplateContainers, from.NewPods.Containers = revision.Name, revision.containers, revision.containers
		from.Change, from.Current = &revision.change, v.isCurrent(revision.ControllerRevision)
	}
	return from
}

// revisionOf finds the pod's revision by its hash label, or by its mark if the pod is partially patched.
func (v *planner) revisionOf(pod *corev1.Pod) *revision {
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

func (v *planner) readRevision(hash string) *revision {
	for _, each := range v.Revisions {
		if hash == "" || each.Labels[inplace.LabelRevisionHash] != hash {
			continue
		}
		template, err := each.Template()
		if err != nil {
			return nil // a template that does not decode counts as gone
		}
		return &revision{ControllerRevision: each, template: template, containers: edit.Living(&template.Decoded().Spec),
			change: v.changeFrom(template)}
	}
	return nil
}

// changeFrom returns what pods of that template need to become those of the DaemonSet's template. A toleration that the native controller
// replaces with its own is added to no pod.
func (v *planner) changeFrom(template apps.Template) edit.Change {
	change := edit.Compare(template, v.DaemonSet.Spec.Template, v.Seen.Rules)
	own := daemonTolerations(v.DaemonSet.Spec.Template.Decoded().Spec.HostNetwork)
	change.Tolerations = slices.DeleteFunc(slices.Clone(change.Tolerations), replacedBy(own))
	return change
}

// decide decides whether Stayput holds the update: it does as long as some pod can be updated in place. Pods that cannot are replaced after
// those. If both controllers took pods down at the same time, neither would know how many the other takes down.
func (v *planner) decide() steps.Decision {
	decision := steps.Decision{UpdateRevision: steps.RevisionOf(v.updateRevision)}
	if !v.unfinished() {
		return decision
	}
	if reason := v.workloadReason(v.updateRevision); reason != nil {
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

// pending yields the pods that stay where they are and do not have the update revision's identity.
func (v *planner) pending() iter.Seq[*daemonPod] {
	return func(yield func(*daemonPod) bool) {
		for _, m := range v.pods {
			if m.housekeeping == nil && !v.updated(m) && !yield(m) {
				return
			}
		}
	}
}

func (v *planner) updated(m *daemonPod) bool { return v.isUpdated(m.Pod) }

// isUpdated reports whether the pod has the update revision's identity.
func (v *planner) isUpdated(pod *corev1.Pod) bool {
	return v.updateRevision != nil && pod.Labels[inplace.LabelRevisionHash] == v.updateRevision.Labels[inplace.LabelRevisionHash]
}

func (v *planner) unfinished() bool {
	for range v.pending() {
		return true
	}
	return false
}

// someInPlace reports whether some pod can be updated in place, and the kubelet of its node is reachable.
func (v *planner) someInPlace() bool {
	for m := range v.pending() {
		if m.Needs().InPlace() && v.reachable(m.Pod) {
			return true
		}
	}
	return false
}

// othersFirst reports whether some pod is to be updated in place before any pod is replaced. A replacement does not wait for pods at the
// partition. Nor does a pod whose resize is infeasible wait for another pod that must be replaced: that could last for ever.
func (v *planner) othersFirst() bool {
	for m := range v.pending() {
		if m.WhyReplaced() == nil && !m.AtPartition && v.reachable(m.Pod) {
			return true
		}
	}
	return false
}
