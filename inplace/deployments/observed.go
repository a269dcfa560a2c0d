package deployments

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/readiness"
)

// observed is what a plan derives from a Rollout, once. The stages of the plan only read it, and add their steps to the plan of the update.
type observed struct {
	Rollout
	update engine.Update
	sets   Sets
	surge  surge
	bypass bypass
}

// observed looks at everything once, in the order in which one fact depends on another.
func (r Rollout) observed() *observed {
	o, wanted := &observed{Rollout: r}, int(apps.Desired(r.Deployment))
	o.update = engine.NewUpdate(r.workload(), &o.Seen)
	o.update.Decided = r.Decision()
	partition := o.update.PartitionNow()
	newRS := r.UpdateRevision()
	o.sets = SetsOf(r.OldestFirst(), newRS, wanted, partition.Keeps(wanted))
	whyAlone := ""
	if newRS != nil {
		spec := newRS.Spec.Template.Decoded().Spec
		o.update.NewPods = r.Seen.DryRun.Of(newRS.UID, newRS.Spec.Template, edit.Living(&spec))
		whyAlone = readiness.WhyNoSurge(spec, o.update.NewPods.Claim)
	}
	o.surge = surgeOf(r, newRS, whyAlone)
	o.update.Paused = o.paused()
	o.addPods()
	o.sets.CountSurge()
	o.update.Partition = podstate.PartitionBudgetOf(partition, wanted, o.update.States)
	for _, m := range o.sets.Pods {
		m.ToReplace = m.Unreachable && m.WaitsForKubelet(m.Owner == o.sets.New)
	}
	o.surge, o.bypass = o.surge.withRoom(r, o.sets), bypassOf(o.sets, r.Seen.Now)
	return o
}

func (r Rollout) workload() engine.Workload {
	return engine.Workload{Object: r.Deployment, Kind: "Deployment", Template: r.Deployment.Spec.Template,
		Replicas: int(apps.Desired(r.Deployment)), MinReadySeconds: r.Deployment.Spec.MinReadySeconds}
}

func (o *observed) addPods() {
	revisions := map[*Set]podstate.PodRevision{}
	for _, pod := range o.update.InOrder(o.byName()) {
		owner := o.sets.Of(pod)
		if owner == nil || !readiness.Live(pod) {
			continue
		}
		revision, known := revisions[owner]
		if !known {
			revision = o.revision(owner)
			revisions[owner] = revision
		}
		m := &Pod{State: o.update.StateOf(pod, revision), Owner: owner}
		o.sets.Add(m)
		o.update.States = append(o.update.States, &m.State)
	}
}

// byName orders pods by their names. Where surge pods replace the last ones, pods on cordoned nodes are last.
func (o *observed) byName() func(a, b *corev1.Pod) int {
	byName := func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }
	if o.Seen.Settings.Surge != inplace.SurgeReplace {
		return byName
	}
	cordoned := map[string]bool{}
	for _, node := range o.Seen.Nodes {
		cordoned[node.Name] = node.Spec.Unschedulable
	}
	return func(a, b *corev1.Pod) int {
		return cmp.Or(inplace.TrueFirst(!cordoned[a.Spec.NodeName], !cordoned[b.Spec.NodeName]), byName(a, b))
	}
}

// revision returns the ReplicaSet as the revision of its pods.
func (o *observed) revision(owner *Set) podstate.PodRevision {
	template := owner.Rs.Spec.Template.Decoded()
	revision := podstate.PodRevision{Revision: owner.Rs.Name, TemplateContainers: edit.Living(&template.Spec),
		TemplateLabels: template.Labels, TemplateAnnotations: template.Annotations,
		Updated: owner == o.sets.New, Current: o.sets.IsCurrent(owner), ByMark: !o.Seen.Mode.Manages(),
		Marked: owner.Rs.Labels[inplace.LabelUpdating] != ""}
	revision.NewPods = o.newPodsOf(owner, revision.TemplateContainers)
	if newRS := o.sets.New; newRS != nil {
		revision.UpdateHash = newRS.Rs.Labels[inplace.LabelTemplateHash]
		if newRS != owner {
			change := edit.Compare(owner.Rs.Spec.Template, newRS.Rs.Spec.Template, o.Seen.Rules)
			revision.Change = &change
		}
	}
	return revision
}

// newPodsOf returns what is known of new pods of a ReplicaSet, whose template has those containers.
func (o *observed) newPodsOf(owner *Set, own []corev1.Container) dryrun.NewPods {
	if owner == o.sets.New && o.update.NewPods.UpdateRevision != "" {
		return o.update.NewPods
	}
	known := o.Seen.OldDryRun
	if known.UpdateRevision == "" && known.Unknown != "" {
		known.UpdateRevision = owner.Rs.UID
	}
	return known.Of(owner.Rs.UID, owner.Rs.Spec.Template, own)
}

func (o *observed) paused() bool { return o.Deployment.Spec.Paused }

func (o *observed) maxSurge() int { return int(o.Deployment.MaxSurge()) }

// maxUnavailable returns how many pods may be unavailable: what the native controller allows. A percentage that rounds to 0 counts as 1,
// unless the update uses surge pods. With an explicit 0, the update uses surge pods, or is native. Recreate allows its only pod to be
// unavailable.
func (o *observed) maxUnavailable() int {
	if o.surge.used {
		return int(o.Deployment.MaxUnavailable())
	}
	return o.maxUnavailableAlone()
}

// noneUnavailable reports whether no pod may be unavailable, so surge pods serve in place of those that restart.
func (o *observed) noneUnavailable() bool { return o.maxUnavailable() == 0 }

// maxUnavailableAlone returns the same without surge pods.
func (o *observed) maxUnavailableAlone() int { return max(1, int(o.Deployment.MaxUnavailable())) }

// budget returns how many more pods may be taken out of service: those that would serve on if Stayput died now, minus those that must. So
// missing and terminating pods count as unavailable.
func (o *observed) budget() podstate.Budget { return o.budgetFor(o.maxUnavailable()) }

func (o *observed) budgetFor(maxUnavailable int) podstate.Budget {
	return podstate.BudgetOf(func(serves func(*podstate.State) bool) int {
		return o.sets.sum(func(s *Set) int { return s.Safe(serves) }) - (o.sets.Wanted - maxUnavailable)
	})
}

// notResized returns why pods do not get their CPU and memory on their nodes; nil if they may.
func (o *observed) notResized() *inplace.Reason {
	return o.update.NotResized(o.sets.AllObserved(), podstate.ResizeDeadline(o.Deployment.Spec.ProgressDeadlineSeconds))
}

// prePull returns the pre-pull of a Deployment. The controller of its pods is the Deployment: the Deployment controller treats only
// ReplicaSets as its own.
func (o *observed) prePull() *prepull.PrePull {
	return o.update.PrePull(1+o.maxSurge(), "Deployment", o.Deployment, o.update.States)
}

// formula returns the native formula of the status.
func (o *observed) formula() StatusFormula {
	f := StatusFormula{Deployment: o.Deployment, Sets: o.OldestFirst(), Now: o.Seen.Now}
	if o.sets.New != nil {
		f.New = o.sets.New.Rs
	}
	return f
}
