package deployments

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/steps"
)

// NeedsDryRun implements engine.Planner. While the rollout is paused no pod
// begins to move, but pods go back.
func (v *Planner) NeedsDryRun() bool {
	return v.NewRS != nil && v.update.NewPods.UpdateRevision == "" && v.unfinished() &&
		(!v.paused() || v.Sets.AnyUpdating() || v.anyPartiallyPatched())
}

func (v *Planner) anyPartiallyPatched() bool {
	return slices.ContainsFunc(v.Members, func(m *replicas.Pod) bool { return m.PartiallyPatched() })
}

// AskDryRun implements engine.Planner.
func (v *Planner) AskDryRun() podstate.Turns {
	v.plan.Result.DryRun = newPodOf(v.NewRS.Rs)
	v.plan.Result.DryRun.Claims = readiness.ClaimsOf(v.NewRS.Rs.Spec.Template.Typed().Spec)
	p := v.pacing(nil)
	p.keepTurns()
	v.checkPartition(p.pace)
	v.patchSets(nil) // renews the hold
	v.patchStatus(nil)
	return p.turns
}

func newPodOf(rs *apps.ReplicaSet) *steps.DryRun {
	return &steps.DryRun{UpdateRevision: rs.UID, Pod: dryrun.NewPod(rs.Spec.Template.Tree(), rs, "ReplicaSet")}
}

// newPodsOf returns what is known of new pods of a ReplicaSet, whose template has those containers.
func (v *Planner) newPodsOf(owner *replicas.Set, own []corev1.Container) dryrun.NewPods {
	if owner == v.NewRS && v.update.NewPods.UpdateRevision != "" {
		return v.update.NewPods
	}
	known := v.seen.OldDryRun
	if known.UpdateRevision == "" && known.Unknown != "" {
		known.UpdateRevision = owner.Rs.UID
	}
	return known.Of(owner.Rs.UID, owner.Rs.Spec.Template, own)
}

// againstDryRun returns why the pods cannot become in place, on their nodes, what new pods would be; nil if they can.
func (v *Planner) againstDryRun() *inplace.Reason {
	return v.update.AgainstDryRun(func(yield func(*podstate.State) bool) {
		for _, m := range v.Members {
			if !m.Surge && !yield(&m.State) {
				return
			}
		}
	})
}
