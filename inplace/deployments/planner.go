package deployments

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// Planner is what one Plan derives from a Rollout, with the plan as it grows.
type Planner struct {
	rollout    Rollout
	deployment *apps.Deployment
	seen       *engine.Snapshot
	update     engine.Update
	plan       *steps.PlanBuilder
	ledger     replicas.Ledger
	NewRS      *replicas.Set // nil until it is created
	Sets       replicas.Sets
	Members    []*replicas.Pod // by name: an order that no event changes
	// whyNoSurge is why a surge pod may find no node beside the other pods; empty if no reason is known.
	whyNoSurge string
	// partitioned is how many pods the partition keeps, and stage what the status says while the update waits for the partition alone.
	partitioned int
	stage       string
	// origins has the origin of the pods of each ReplicaSet, computed once.
	origins map[*replicas.Set]podstate.PodRevision
}

// Planner returns a planner. It looks at everything once, in the order in which one fact depends on another.
func (r Rollout) Planner() *Planner {
	v := &Planner{rollout: r, deployment: r.Deployment, seen: &r.Seen, update: engine.NewUpdate(r.workload(), &r.Seen),
		origins: map[*replicas.Set]podstate.PodRevision{}}
	v.plan, v.update.Decided = v.update.Plan, r.Decision()
	newRS, _ := v.update.Decided.UpdateRevision.(*apps.ReplicaSet)
	for _, rs := range r.OldestFirst() {
		s := &replicas.Set{Rs: rs}
		s.Wanted = replicas.Wanted{Updating: rs.Labels[inplace.LabelUpdating],
			Surge: rs.Labels[inplace.LabelSurgeReplicas], Bypassed: rs.Labels[inplace.LabelBypassed], Current: rs.Labels[inplace.LabelCurrent]}
		if rs == newRS {
			v.NewRS = s
		}
		v.Sets = append(v.Sets, s)
	}
	if newRS != nil {
		v.update.NewPods = r.Seen.DryRun.Of(newRS.UID, newRS.Spec.Template, edit.Living(&newRS.Spec.Template.Decoded().Spec))
		v.whyNoSurge = readiness.WhyNoSurge(newRS.Spec.Template.Decoded().Spec, v.update.NewPods.Claim)
	}
	for _, pod := range slices.SortedFunc(slices.Values(r.Seen.Pods), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }) {
		if owner := v.Sets.Of(pod); owner != nil && readiness.Live(pod) {
			m := v.member(pod, owner)
			owner.Pods = append(owner.Pods, m)
			v.Members, v.update.States = append(v.Members, m), append(v.update.States, &m.State)
		}
	}
	v.countSurge()
	v.partitioned = v.seen.Settings.Partition.Keeps(v.desired())
	v.update.Partition = podstate.PartitionBudgetOf(v.seen.Settings.Partition, v.desired(), v.update.Pods())
	v.findToReplace()
	return v
}

// Base implements engine.Planner.
func (v *Planner) Base() *engine.Update { return &v.update }

func (r Rollout) workload() engine.Workload {
	return engine.Workload{Object: r.Deployment, Kind: "Deployment", Template: r.Deployment.Spec.Template,
		Replicas: int(apps.Desired(r.Deployment)), MinReadySeconds: r.Deployment.Spec.MinReadySeconds}
}

// changeFrom returns what a pod with the template of that ReplicaSet needs to become a pod of the update revision; nil while there is
// none.
func (v *Planner) changeFrom(rs *apps.ReplicaSet) *edit.Change {
	if v.NewRS == nil || v.NewRS.Rs == rs {
		return nil
	}
	change := edit.Compare(rs.Spec.Template, v.NewRS.Rs.Spec.Template, v.seen.Rules)
	return &change
}

func (v *Planner) desired() int { return v.update.Workload.Replicas }

func (v *Planner) paused() bool { return v.deployment.Spec.Paused }

// unfinished reports whether old ReplicaSets are in use, some pod has something left to change, or there are surge replicas.
func (v *Planner) unfinished() bool {
	return v.oldInUse() ||
		slices.ContainsFunc(v.Members, func(m *replicas.Pod) bool { return m.Needs().Left() || m.PartiallyPatched() }) ||
		v.Sets.Surge() > 0
}

func (v *Planner) oldInUse() bool {
	return slices.ContainsFunc(v.Sets, func(s *replicas.Set) bool { return s != v.NewRS && s.InUse() })
}

func (v *Planner) seconds() string { return times.Seconds(v.seen.Now) }
