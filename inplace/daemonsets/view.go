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
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/nodes"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/rehearsal"
	"github.com/stayput/stayput/inplace/steps"
)

// daemonView is what one Plan derives from a DaemonRollout, and the plan as it grows: what deployments.View is for a Deployment.
type daemonView struct {
	DaemonRollout
	steps.Draft
	judged      steps.Verdict
	rehearsed   rehearsal.Rehearsed
	target      *apps.ControllerRevision // nil as long as the native controller has not made it
	members     []*daemon                // by name: an order that no event changes
	nodesByName map[string]*corev1.Node
	placed      map[string][]types.UID // the live pods, by node
	places      places
	// room is what the partition leaves, unresized why pods do not get their CPU and memory where they are; nil if they may.
	room      member.Room
	unresized *inplace.Reason
	marks     map[*apps.ControllerRevision]marks
	// What was worked out of templates once: by hash, the revisions; and what the DaemonSet wants.
	revisions map[string]*revision
	wanted    []corev1.Container
	// auxiliary are the containers that nobody waits for.
	auxiliary inplace.Auxiliary
}

// daemon is a live pod of a DaemonSet.
type daemon struct {
	member.State
	// revision it was made or last patched from; nil if that is gone.
	revision *revision
	// housekeeping is why the native controller deletes the pod whatever its revision is; nil if it does not.
	housekeeping *inplace.Reason
}

// revision is a ControllerRevision and what its template means.
type revision struct {
	*apps.ControllerRevision
	template   apps.Template
	containers []corev1.Container
	// change from its template to the DaemonSet's.
	change edit.Change
}

// marks are those we write on a ControllerRevision.
type marks struct{ underWay, released, woken, old string }

func (r DaemonRollout) view() *daemonView {
	v := &daemonView{
		DaemonRollout: r, target: r.Target(), wanted: edit.Living(&r.DaemonSet.Spec.Template.Decoded().Spec),
		places: placesOf(r.DaemonSet), nodesByName: nodes.ByName(r.Nodes), placed: map[string][]types.UID{},
		marks: map[*apps.ControllerRevision]marks{}, revisions: map[string]*revision{},
		auxiliary: inplace.AuxiliaryOf(r.DaemonSet.Annotations),
	}
	target := types.UID("")
	if v.target != nil {
		target = v.target.UID
	}
	v.rehearsed = r.Rehearsal.Of(target, r.DaemonSet.Spec.Template, v.wanted)
	for _, pod := range r.Pods {
		if readiness.Live(pod) {
			v.placed[pod.Spec.NodeName] = append(v.placed[pod.Spec.NodeName], pod.UID)
		}
	}
	for _, each := range r.Revisions {
		v.marks[each] = marks{underWay: each.Labels[labelUnderWay], released: each.Labels[inplace.LabelReleased], old: each.Labels[inplace.LabelOld]}
	}
	for _, pod := range slices.SortedFunc(slices.Values(r.Pods), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }) {
		if readiness.Live(pod) {
			v.members = append(v.members, v.daemon(pod))
		}
	}
	v.judged = v.judge()
	return v
}

func (v *daemonView) daemon(pod *corev1.Pod) *daemon {
	m := &daemon{revision: v.revisionOf(pod), housekeeping: v.housekeeping(pod)}
	m.State = member.StateOf(&v.Draft, pod, v.origin(pod, m.revision), v.rehearsed, v.Ahead, v.DaemonSet.Spec.MinReadySeconds, v.Now)
	m.Auxiliary = v.auxiliary
	m.Silent = nodes.KnownSilent(v.nodesByName[pod.Spec.NodeName])
	m.Unfit = m.WhyUnfit(v.nodesByName[pod.Spec.NodeName])
	return m
}

func (v *daemonView) origin(pod *corev1.Pod, revision *revision) member.Origin {
	from := member.Origin{OfTarget: v.isTargets(pod), ByLabel: true}
	if v.target != nil {
		from.TargetHash = v.target.Labels[inplace.LabelRevisionHash]
	}
	if revision == nil {
		from.Change = &edit.Change{Reasons: inplace.Reasons{{Code: inplace.CodeRevisionGone, Message: "the ControllerRevision of pod " + pod.Name + " is gone"}}}
	} else {
		from.Own, from.Born.Containers = revision.containers, revision.containers
		from.Change, from.Old = &revision.change, v.old(revision.ControllerRevision)
	}
	return from
}

// revisionOf finds the pod's revision by its hash label, or by its mark while that stands for the hash.
func (v *daemonView) revisionOf(pod *corev1.Pod) *revision {
	hash := pod.Labels[inplace.LabelRevisionHash]
	if member.Between(pod) {
		hash = readiness.MoveOf(pod).Hash
	}
	found, known := v.revisions[hash]
	if !known {
		found = v.readRevision(hash)
		v.revisions[hash] = found
	}
	return found
}

func (v *daemonView) readRevision(hash string) *revision {
	for _, each := range v.Revisions {
		if hash == "" || each.Labels[inplace.LabelRevisionHash] != hash {
			continue
		}
		template, err := each.Template()
		if err != nil {
			return nil // nothing is known of it, as if it were gone
		}
		return &revision{ControllerRevision: each, template: template, containers: edit.Living(&template.Decoded().Spec),
			change: v.changeFrom(template)}
	}
	return nil
}

// changeFrom is what pods of that template need to become those of the DaemonSet's. A toleration that the native controller replaces by its own
// comes to no pod.
func (v *daemonView) changeFrom(template apps.Template) edit.Change {
	change := edit.Compare(template, v.DaemonSet.Spec.Template, v.Rules)
	own := daemonTolerations(v.DaemonSet.Spec.Template.Decoded().Spec.HostNetwork)
	change.Tolerations = slices.DeleteFunc(slices.Clone(change.Tolerations), replacedBy(own))
	return change
}

// judge holds an update as long as some pod can take it. If some cannot, they come after those: while both controllers take
// pods down, neither knows how many the other does.
func (v *daemonView) judge() steps.Verdict {
	verdict := steps.Verdict{Target: steps.TargetOf(v.target)}
	if !v.unfinished() {
		return verdict
	}
	if reason := v.workloadReason(v.target); reason != nil {
		verdict.Reasons = inplace.Reasons{*reason}
		return verdict
	}
	inPlace, told := false, map[*revision]bool{}
	for m := range v.pending() {
		if m.Needs().InPlace() {
			inPlace = true
		} else if !told[m.revision] {
			told[m.revision] = true
			verdict.Reasons = verdict.Reasons.And(m.Needs().Reasons...)
		}
	}
	verdict.Held = inPlace && len(verdict.Reasons) == 0 || v.someInPlace()
	return verdict
}

// pending are the pods that stay where they are and have not the target's identity.
func (v *daemonView) pending() iter.Seq[*daemon] {
	return func(yield func(*daemon) bool) {
		for _, m := range v.members {
			if m.housekeeping == nil && !v.updated(m) && !yield(m) {
				return
			}
		}
	}
}

func (v *daemonView) updated(m *daemon) bool { return v.isTargets(m.Pod) }

// isTargets tells whether the pod has the target's identity.
func (v *daemonView) isTargets(pod *corev1.Pod) bool {
	return v.target != nil && pod.Labels[inplace.LabelRevisionHash] == v.target.Labels[inplace.LabelRevisionHash]
}

func (v *daemonView) unfinished() bool {
	for range v.pending() {
		return true
	}
	return false
}

// someInPlace: some pod's revision can be updated in place, where somebody would act on that.
func (v *daemonView) someInPlace() bool {
	for m := range v.pending() {
		if m.Needs().InPlace() && v.reachable(m.Pod) {
			return true
		}
	}
	return false
}

// othersFirst: some pod comes in place before any is replaced. Nobody waits for those that a partition keeps, nor one that does not fit for another
// that must be replaced: that could be for ever.
func (v *daemonView) othersFirst() bool {
	for m := range v.pending() {
		if m.WhyReplaced() == nil && !m.Kept && v.reachable(m.Pod) {
			return true
		}
	}
	return false
}

// states are the pods as far as the kind of their workload does not matter.
func (v *daemonView) states() iter.Seq[*member.State] {
	return func(yield func(*member.State) bool) {
		for _, m := range v.members {
			if !yield(&m.State) {
				return
			}
		}
	}
}
