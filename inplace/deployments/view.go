package deployments

import (
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/ledger"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/nodes"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/rehearsal"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// View is what one Plan derives from a Rollout, and the plan as it grows.
type View struct {
	Rollout
	steps.Draft
	judged    steps.Verdict
	rehearsed rehearsal.Rehearsed
	ledger    ledger.Ledger
	Target    *replicas.Set // nil as long as nobody has created it
	replicas.Sets
	Members     []*replicas.Member // by name: an order that no event changes
	nodesByName map[string]*corev1.Node
	// whyAlone is why a pod of the target can hardly run beside another; empty if nothing is known against it.
	whyAlone string
	// auxiliary are the containers that nobody waits for.
	auxiliary inplace.Auxiliary
	// keeps is how many pods the partition keeps, room what it leaves, and stage what it says where nothing else is waited for.
	keeps int
	room  member.Room
	stage string
	// unresized is why pods do not get their CPU and memory where they are; nil if they may.
	unresized *inplace.Reason
	// origins of pods, worked out once for all of a ReplicaSet's.
	origins map[*replicas.Set]member.Origin
}

// View looks at everything once, in the order in which one thing follows from another.
func (r Rollout) View() *View {
	v := &View{Rollout: r, Draft: steps.Draft{Beats: r.Beats}, judged: r.Verdict(), nodesByName: nodes.ByName(r.Nodes),
		auxiliary: inplace.AuxiliaryOf(r.Deployment.Annotations), origins: map[*replicas.Set]member.Origin{}}
	target, _ := v.judged.Target.(*apps.ReplicaSet)
	for _, rs := range r.OldestFirst() {
		s := &replicas.Set{Rs: rs}
		s.Wish = replicas.Wish{Settling: rs.Labels[inplace.LabelSettling], Released: rs.Labels[inplace.LabelReleased],
			Borrowed: rs.Labels[inplace.LabelBorrowed], Slipped: rs.Labels[inplace.LabelSlipped], Old: rs.Labels[inplace.LabelOld]}
		if rs == target {
			v.Target = s
		}
		v.Sets = append(v.Sets, s)
	}
	if target != nil {
		v.rehearsed = r.Rehearsal.Of(target.UID, target.Spec.Template, edit.Living(&target.Spec.Template.Decoded().Spec))
		v.whyAlone = readiness.WhyAlone(target.Spec.Template.Decoded().Spec, v.rehearsed.Claim)
	}
	for _, pod := range slices.SortedFunc(slices.Values(r.Pods), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }) {
		if owner := v.Of(pod); owner != nil && readiness.Live(pod) {
			m := v.member(pod, owner)
			owner.Pods = append(owner.Pods, m)
			v.Members = append(v.Members, m)
		}
	}
	v.loans()
	v.keeps = v.Settings.Partition.Keeps(v.desired())
	v.room = member.RoomOf(v.Settings.Partition, v.desired(), v.states())
	v.lose()
	return v
}

// changeFrom is what pods with that ReplicaSet's template need to become the target's; nil as long as there is no target.
func (v *View) changeFrom(rs *apps.ReplicaSet) *edit.Change {
	if v.Target == nil || v.Target.Rs == rs {
		return nil
	}
	change := edit.Compare(rs.Spec.Template, v.Target.Rs.Spec.Template, v.Rules)
	return &change
}

func (v *View) desired() int { return int(apps.Desired(v.Deployment)) }

func (v *View) paused() bool { return v.Deployment.Spec.Paused }

// unfinished: some pod is not yet, or will not be, one of the target, or is not needed for long.
func (v *View) unfinished() bool {
	return v.sourcesInUse() ||
		slices.ContainsFunc(v.Members, func(m *replicas.Member) bool { return m.Needs().Left() || m.IsHalfway() }) ||
		v.Loan() > 0
}

func (v *View) sourcesInUse() bool {
	return slices.ContainsFunc(v.Sets, func(s *replicas.Set) bool { return s != v.Target && s.InUse() })
}

// states are the pods as far as the kind of their workload does not matter.
func (v *View) states() iter.Seq[*member.State] { return replicas.StatesOf(v.Members) }

func (v *View) drainage(m *replicas.Member, turns member.Turns) member.Drainage {
	return turns.Drainage(&m.State, v.Endpoints, v.Settings.Drain, v.Now)
}

func (v *View) gates(turns member.Turns) { member.OpenGates(&v.Draft, v.states(), turns, v.Now) }

func (v *View) seconds() string { return times.Seconds(v.Now) }
