package inplace

import (
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// daemonView is what one Plan derives from a DaemonRollout, and the plan as it grows: what view is for a Deployment.
type daemonView struct {
	DaemonRollout
	draft
	judged      Verdict
	rehearsed   rehearsed
	target      *ControllerRevision // nil as long as the native controller has not made it
	members     []*daemon           // by name: an order that no event changes
	nodesByName map[string]*corev1.Node
	placed      map[string][]types.UID // the live pods, by node
	places      places
	marks       map[*ControllerRevision]marks
	// What was worked out of templates once: by hash, the revisions; and what the DaemonSet wants.
	revisions map[string]*revision
	wanted    []corev1.Container
}

// daemon is a live pod of a DaemonSet.
type daemon struct {
	podState
	// revision it was made or last patched from; nil if that is gone.
	revision *revision
	// housekeeping is why the native controller deletes the pod whatever its revision is; nil if it does not.
	housekeeping *Reason
}

// revision is a ControllerRevision and what its template means.
type revision struct {
	*ControllerRevision
	template   Template
	containers []corev1.Container
	// change from its template to the DaemonSet's.
	change Change
}

// marks are those we write on a ControllerRevision.
type marks struct{ underWay, released, woken string }

func (r DaemonRollout) view() *daemonView {
	v := &daemonView{
		DaemonRollout: r, target: r.Target(), wanted: r.DaemonSet.Spec.Template.typed().Spec.Containers,
		places: r.DaemonSet.places(), nodesByName: byName(r.Nodes), placed: map[string][]types.UID{},
		marks: map[*ControllerRevision]marks{}, revisions: map[string]*revision{},
	}
	target := types.UID("")
	if v.target != nil {
		target = v.target.UID
	}
	v.rehearsed = r.Rehearsal.of(target, r.DaemonSet.Spec.Template, v.wanted)
	for _, pod := range r.Pods {
		if live(pod) {
			v.placed[pod.Spec.NodeName] = append(v.placed[pod.Spec.NodeName], pod.UID)
		}
	}
	for _, each := range r.Revisions {
		v.marks[each] = marks{underWay: each.Labels[labelUnderWay], released: each.Labels[LabelReleased]}
	}
	for _, pod := range slices.SortedFunc(slices.Values(r.Pods), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }) {
		if live(pod) {
			v.members = append(v.members, v.daemon(pod))
		}
	}
	v.judged = v.judge()
	return v
}

func (v *daemonView) daemon(pod *corev1.Pod) *daemon {
	m := &daemon{revision: v.revisionOf(pod), housekeeping: v.housekeeping(pod)}
	m.podState = v.state(pod, v.origin(pod, m.revision), v.rehearsed, v.Ahead, v.DaemonSet.Spec.MinReadySeconds, v.Now)
	m.unheard = unheard(v.nodesByName[pod.Spec.NodeName]) && v.Mode.Manages()
	return m
}

func (v *daemonView) origin(pod *corev1.Pod, revision *revision) origin {
	from := origin{ofTarget: v.isTargets(pod), byLabel: true}
	if revision == nil {
		from.change.Reasons = Reasons{{Code: CodeRevisionGone, Message: "the ControllerRevision of pod " + pod.Name + " is gone"}}
	} else {
		from.own, from.change = revision.containers, revision.change
	}
	return from
}

// revisionOf finds the pod's revision by its hash label, or by its mark while that stands for the hash.
func (v *daemonView) revisionOf(pod *corev1.Pod) *revision {
	hash := pod.Labels[labelRevisionHash]
	if between(pod) {
		hash = moveOf(pod).Hash
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
		if hash == "" || each.Labels[labelRevisionHash] != hash {
			continue
		}
		template, err := each.Template()
		if err != nil {
			return nil // nothing is known of it, as if it were gone
		}
		return &revision{ControllerRevision: each, template: template, containers: template.typed().Spec.Containers,
			change: Compare(template, v.DaemonSet.Spec.Template, v.Rules)}
	}
	return nil
}

// judge holds an update as long as some pod can take it. If some cannot, they come after those: while both controllers take
// pods down, neither knows how many the other does.
func (v *daemonView) judge() Verdict {
	verdict := Verdict{Target: TargetOf(v.target)}
	if !v.unfinished() {
		return verdict
	}
	if reason := v.workloadReason(v.target); reason != nil {
		verdict.Reasons = Reasons{*reason}
		return verdict
	}
	inPlace, told := false, map[*revision]bool{}
	for m := range v.pending() {
		if m.needs.InPlace() {
			inPlace = true
		} else if !told[m.revision] {
			told[m.revision] = true
			verdict.Reasons = verdict.Reasons.and(m.needs.Reasons...)
		}
	}
	verdict.Held = inPlace && len(verdict.Reasons) == 0 || v.othersFirst()
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

func (v *daemonView) updated(m *daemon) bool { return v.isTargets(m.pod) }

// isTargets tells whether the pod has the target's identity.
func (v *daemonView) isTargets(pod *corev1.Pod) bool {
	return v.target != nil && pod.Labels[labelRevisionHash] == v.target.Labels[labelRevisionHash]
}

func (v *daemonView) unfinished() bool {
	for range v.pending() {
		return true
	}
	return false
}

// othersFirst: some pod can be updated in place now.
func (v *daemonView) othersFirst() bool {
	for m := range v.pending() {
		if m.needs.InPlace() && v.reachable(m.pod) {
			return true
		}
	}
	return false
}

// states are the pods as far as the kind of their workload does not matter.
func (v *daemonView) states() iter.Seq[*podState] {
	return func(yield func(*podState) bool) {
		for _, m := range v.members {
			if !yield(&m.podState) {
				return
			}
		}
	}
}
