package inplace

import (
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// view is what one Plan derives from a Rollout, and the plan as it grows.
type view struct {
	Rollout
	draft
	judged    Verdict
	rehearsed rehearsed
	ledger    Ledger
	target    *replicaSet // nil as long as nobody has created it
	sets
	members     []*member // by name: an order that no event changes
	nodesByName map[string]*corev1.Node
	// whyAlone is why a pod of the target can hardly run beside another; empty if nothing is known against it.
	whyAlone string
	// What was worked out of templates once.
	changes    map[*ReplicaSet]Change
	containers map[*ReplicaSet][]corev1.Container
}

// replicaSet is an owned ReplicaSet with its live pods, and what shall become of it.
type replicaSet struct {
	rs   *ReplicaSet
	pods []*member
	wish wish
	// loan is how many of its replicas are borrowed.
	loan int
}

// wish are the values of our labels on a ReplicaSet; empty for none. Its replicas are the ledger's.
type wish struct{ settling, released, borrowed, slipped string }

func (r Rollout) view() *view {
	v := &view{Rollout: r, draft: draft{beats: r.Beats}, judged: r.Verdict(), nodesByName: byName(r.Nodes), changes: map[*ReplicaSet]Change{}, containers: map[*ReplicaSet][]corev1.Container{}}
	target, _ := v.judged.Target.(*ReplicaSet)
	for _, rs := range r.oldestFirst() {
		s := &replicaSet{rs: rs}
		s.wish = wish{settling: rs.Labels[LabelSettling], released: rs.Labels[LabelReleased],
			borrowed: rs.Labels[LabelBorrowed], slipped: rs.Labels[LabelSlipped]}
		if rs == target {
			v.target = s
		}
		v.sets = append(v.sets, s)
	}
	if target != nil {
		v.rehearsed = r.Rehearsal.of(target.UID, target.Spec.Template, v.containersOf(target))
		v.whyAlone = whyAlone(target.Spec.Template.typed().Spec, v.rehearsed.Claim)
	}
	for _, pod := range slices.SortedFunc(slices.Values(r.Pods), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }) {
		if owner := v.ownerOf(pod); owner != nil && live(pod) {
			m := v.member(pod, owner)
			owner.pods = append(owner.pods, m)
			v.members = append(v.members, m)
		}
	}
	v.loans()
	v.lose()
	return v
}

func (v *view) ownerOf(pod *corev1.Pod) *replicaSet {
	for _, s := range v.sets {
		if metav1.IsControlledBy(pod, s.rs) {
			return s
		}
	}
	return nil
}

// changeFrom is what pods with that ReplicaSet's template need to become the target's; nothing as long as there is no target.
func (v *view) changeFrom(rs *ReplicaSet) Change {
	if v.target == nil || v.target.rs == rs {
		return Change{}
	}
	change, known := v.changes[rs]
	if !known {
		change = Compare(rs.Spec.Template, v.target.rs.Spec.Template, v.Rules)
		v.changes[rs] = change
	}
	return change
}

// size is what its controller works towards.
func (s *replicaSet) size() int { return int(replicas(s.rs)) }

// surplus is how many pods its controller would delete, were that not held.
func (s *replicaSet) surplus() int { return max(0, len(s.pods)-s.size()) }

func (s *replicaSet) count(which func(*member) bool) int {
	count := 0
	for _, m := range s.pods {
		if which(m) {
			count++
		}
	}
	return count
}

func (s *replicaSet) available() int {
	return s.count(func(m *member) bool { return m.available })
}

func (s *replicaSet) unready() int {
	return s.count(func(m *member) bool { return !m.ready() })
}

// safe is how many available pods its controller would leave.
func (s *replicaSet) safe() int { return min(s.available(), s.size()) }

// observed: its controller knows its replicas.
func (s *replicaSet) observed() bool { return observed(s.rs) }

// seen: its controller knows its replicas and its pods.
func (s *replicaSet) seen() bool {
	return s.observed() && int(s.rs.Status.Replicas) == len(s.pods)
}

// inUse: it has or wants pods.
func (s *replicaSet) inUse() bool { return inUse(s.rs) || len(s.pods) > 0 }

func (v *view) desired() int { return int(desired(v.Deployment)) }

func (v *view) paused() bool { return v.Deployment.Spec.Paused }

// allSettling: all that take part are.
func (v *view) allSettling() bool {
	return !slices.ContainsFunc(v.sets, func(s *replicaSet) bool { return (s.inUse() || s == v.target) && !Settling(s.rs) })
}

// unfinished: some pod is not yet, or will not be, one of the target, or is not needed for long.
func (v *view) unfinished() bool {
	return v.sourcesInUse() ||
		slices.ContainsFunc(v.members, func(m *member) bool { return m.needs.Left() }) ||
		v.loan() > 0
}

func (v *view) sourcesInUse() bool {
	return slices.ContainsFunc(v.sets, func(s *replicaSet) bool { return s != v.target && s.inUse() })
}

// containersOf the ReplicaSet's template.
func (v *view) containersOf(rs *ReplicaSet) []corev1.Container {
	containers, known := v.containers[rs]
	if !known {
		containers = rs.Spec.Template.typed().Spec.Containers
		v.containers[rs] = containers
	}
	return containers
}

// states are the pods as far as the kind of their workload does not matter.
func (v *view) states() iter.Seq[*podState] { return statesOf(v.members) }

func statesOf(members []*member) iter.Seq[*podState] {
	return func(yield func(*podState) bool) {
		for _, m := range members {
			if !yield(&m.podState) {
				return
			}
		}
	}
}

func (v *view) drainage(m *member, turns turns) drainage {
	return turns.drainage(&m.podState, v.Endpoints, v.Settings.Drain, v.Now)
}

func (v *view) gates(turns turns) { v.openGates(v.states(), turns, v.Now) }

func (v *view) seconds() string { return seconds(v.Now) }
