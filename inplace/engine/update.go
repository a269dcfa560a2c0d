package engine

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/disruption"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// Update is a plan in the making: what a kind derives from its snapshot, and the steps so far.
type Update struct {
	Plan     *steps.PlanBuilder
	Workload Workload
	// Decided is whether Stayput makes the update.
	Decided steps.Decision
	// NewPods is what is known of new pods of the update revision.
	NewPods dryrun.NewPods
	// Partition is the partition budget.
	Partition podstate.PartitionBudget
	// States are the live pods in the order in which they are updated: see InOrder.
	States []*podstate.State
	// NodesByName are the nodes that are known.
	NodesByName map[string]*corev1.Node
	// auxiliary are the containers that the user does not wait for.
	auxiliary inplace.Auxiliary
	// hooks are the pre-restart hooks that hold pods.
	hooks inplace.Hooks
	// budgets are the PodDisruptionBudgets that select pods of the workload.
	budgets disruption.Budgets
	// Paused: the user has paused the rollout.
	Paused bool
	// order is the order of pods that the user asks for.
	order order
	// out are the pods that this plan takes out of service.
	out  map[*corev1.Pod]bool
	seen *Snapshot
}

// Object is a workload as the API server has it.
type Object = apps.APIObject

// Workload is what a plan needs of the workload itself.
type Workload struct {
	Object
	// Kind is the name of its kind, as Deployment.
	Kind     string
	Template apps.Template
	// Replicas is how many pods it wants.
	Replicas int
	// MinReadySeconds is how long a pod must be Ready to be available.
	MinReadySeconds int32
	// Kept is why pods that are not updated in place keep their revision; nil if the native controller replaces them.
	Kept *inplace.Reason
}

// NotInPlace returns the reasons why pods are not updated in place, with what becomes of these pods.
func (w Workload) NotInPlace(reasons inplace.Reasons) inplace.Reasons {
	if w.Kept == nil || len(reasons) == 0 {
		return reasons
	}
	return reasons.AndShown(*w.Kept)
}

// accepted reports whether the last edit of the template was accepted as one in place. No webhook was asked, or Stayput did not manage the
// workload, if nothing is recorded. Of which template it is does not count: the native controller may create a revision of an edit while
// the next one is recorded already.
func (w Workload) accepted() bool {
	decided := w.GetAnnotations()[inplace.AnnotationDecision]
	return decided != "" && !strings.HasPrefix(decided, edit.RecreatePrefix)
}

// replacing returns what creates another pod in place of one that is not updated in place.
func (w Workload) replacing() string {
	if w.Kept != nil {
		return w.Kind + " controller, after you delete it"
	}
	return w.Kind + " controller"
}

// NewUpdate begins a plan for a workload.
func NewUpdate(workload Workload, seen *Snapshot) Update {
	byName, inForce := readiness.NodesByName(seen.Nodes), seen.Settings.InForce(workload)
	return Update{Plan: &steps.PlanBuilder{Batches: seen.Batches}, Workload: workload, NodesByName: byName,
		auxiliary: inplace.AuxiliaryOf(inForce), hooks: inplace.HooksOf(inForce),
		budgets: seen.Disruption.Of(seen.Pods, seen.Now),
		order:   orderOf(inForce, seen.Pods, byName), seen: seen}
}

// Awaits reports whether the update waits instead of falling back for that reason. Where the native controller replaces no pod, there is
// nothing to wait for.
func (u *Update) Awaits(why inplace.Reason) bool {
	_, waits := u.seen.instead(u.Workload, why)
	return waits
}

// PartitionNow returns the partition, with what the update waits for instead of falling back.
func (u *Update) PartitionNow() inplace.Partition {
	partition, why := u.seen.Settings.Partition, u.seen.Obstacle
	if why == nil && u.Decided.Waits {
		why = &u.Decided.Reasons[0]
	}
	if why != nil {
		partition, _ = u.seen.instead(u.Workload, *why)
	}
	return partition
}

// StateOf returns the state of a live pod that has that revision.
func (u *Update) StateOf(pod *corev1.Pod, revision podstate.PodRevision) podstate.State {
	s := podstate.StateOf(u.Plan, pod, revision, u.NewPods, u.Workload.MinReadySeconds, u.seen.Now)
	node := u.NodesByName[pod.Spec.NodeName]
	s.Auxiliary, s.Unreachable = u.auxiliary, readiness.Unreachable(node)
	s.Infeasible, s.StaysIn = s.WhyInfeasible(node), u.staysIn(pod)
	if u.seen.TakenOut.undone(pod) {
		u.Plan.Result.Bypassed = "no webhook was asked about a report of pod " + pod.Name
	}
	s.Hold(u.hooks, u.seen.Settings.PreRestartTimeout, u.seen.Now)
	return s
}

// Reachable reports whether the kubelet of the pod's node would act on a patch. Otherwise the pod would not be what its identity says, for
// a long time. Where no node is known, every kubelet would.
func (u *Update) Reachable(pod *corev1.Pod) bool {
	node, known := u.NodesByName[pod.Spec.NodeName]
	if !known {
		return u.seen.Nodes == nil
	}
	return !readiness.Unreachable(node)
}

// TakeOut takes the pod out of service, so that it drains before its containers restart. Nothing but the time shows that a container has
// yet to stop for its CPU and memory.
func (u *Update) TakeOut(s *podstate.State, why string) {
	takes := u.drainTakes()
	if s.RestartsToResize() {
		takes += readiness.GracePeriod(s.Pod)
	}
	u.Plan.Step(podstate.TakeOut(s.Pod, takes, u.seen.Now, why))
	u.leaves(s)
}

// leaves notes that the pod leaves its Services with this plan. The last pod of the workload that serves then stays until its containers
// stop: when the plan began, each of them could be replaced by the others.
func (u *Update) leaves(s *podstate.State) {
	if u.out == nil {
		u.out = map[*corev1.Pod]bool{}
	}
	u.out[s.Pod] = true
	var serving []*podstate.State
	for _, other := range u.States {
		if other.Ready() && !u.out[other.Pod] {
			serving = append(serving, other)
		}
	}
	if len(serving) != 1 {
		return
	}
	last := serving[0]
	if _, offered := u.seen.Endpoints[last.Pod.UID]; offered && len(u.hooks.On(last.Pod)) == 0 {
		last.StaysIn = cmp.Or(last.StaysIn, "it is the last pod that serves")
	}
}

// ProceedingPhase sets the phase of an update that goes on: what it waits for if no pod is in progress and a PodDisruptionBudget or a limit
// keeps all others in service.
func (u *Update) ProceedingPhase(progress string) {
	phase := steps.PhaseUpdating
	if u.Plan.Result.Progress.Moving == 0 {
		phase = cmp.Or(u.Plan.Result.Refused(), phase)
	}
	u.Plan.Phase(phase, progress)
}

// AtStage returns the phase and the message of an update that waits for nothing but the partition or the window, or that cannot go on
// because they are not valid. Both are empty if neither is so. Settled says that nothing else is under way that only its kind knows. Where
// nodes pull images at the partition, it waits for these first.
func (u *Update) AtStage(settled bool) (phase steps.Phase, message string) {
	if flaw := u.Partition.Flaw(u.States); flaw != "" {
		return steps.PhaseStalled, flaw
	}
	images := u.Plan.Result.Images
	stage, byWindow := u.Partition.Waits(u.States)
	switch {
	case !settled || images.Pulling || stage == "":
		return "", ""
	case byWindow:
		return steps.PhaseWindow, images.After(stage)
	}
	return steps.PhasePartition, images.After(stage)
}

// AgainstDryRun returns why one of these pods cannot become in place, on its node, what a new pod would be; nil if all can.
func (u *Update) AgainstDryRun(pods []*podstate.State) *inplace.Reason {
	if reason := u.NewPods.Against(); reason != nil {
		return reason
	}
	for _, s := range pods {
		if reason := u.againstPod(s); reason != nil {
			return reason
		}
	}
	return nil
}

// NotResized returns why pods do not get their CPU and memory on their nodes; nil if they may: see podstate.NotResized.
func (u *Update) NotResized(counted bool, deadline time.Duration) *inplace.Reason {
	return podstate.NotResized(u.Plan, u.States, counted, deadline, u.seen.Now)
}

func (u *Update) againstPod(s *podstate.State) *inplace.Reason {
	if !s.Updated {
		reason := cmp.Or(u.NewPods.AgainstPod(s.Pod, s.Needs(), s.Rewritten),
			podstate.OnVirtualNode(u.NodesByName[s.Pod.Spec.NodeName]))
		if reason != nil {
			return reason
		}
	}
	if needs := s.Needs(); !needs.InPlace() {
		return &needs.Reasons[0]
	}
	return nil
}

// PrePull returns the pre-pull for those pods; none if there is no update revision yet. Its pods get that controller, which is of that
// kind. A quota must keep room for as many pods as reserved.
func (u *Update) PrePull(reserved int, kind string, controller metav1.Object, pods []*podstate.State) *prepull.PrePull {
	atATime := u.seen.Settings.PrePullParallelism
	p := &prepull.PrePull{Plan: u.Plan, Pulling: u.seen.Pull, AtATime: atATime, Pulls: u.Partition.PrePulls(atATime, u.States),
		Nodes: u.NodesByName, Now: u.seen.Now, Pods: u.States, Reserve: reserved, Waits: u.WaitsToRestart}
	if revision := u.Decided.UpdateRevision; revision != nil {
		p.PullsOnly = u.Partition.PullsOnly() && len(u.States) >= u.Workload.Replicas // a missing pod may need the room
		p.Workload, p.Next = prepull.OwnedBy(u.Workload, revision.GetUID(), kind, controller), prepull.AllToRestart(pods, p.PullsOnly)
	}
	return p
}

// PodProgress returns what users need to know of each pod. Updating is whether a revision is marked.
func (u *Update) PodProgress(updating bool) []podstate.PodProgress {
	var all []podstate.PodProgress
	pace := u.Pace(podstate.Budget{})
	pace.asked = true
	for _, s := range u.States {
		replaces, before := "", ""
		if wait := pace.Why(s, Leave); wait != nil {
			before = wait.Why
		}
		if s.AtPartition {
			before = cmp.Or(u.seen.Pull.Awaits(s.Pod), before)
		}
		if !u.Decided.Held && !updating || u.Workload.Kept != nil && s.WhyReplaced() != nil {
			replaces = u.Workload.replacing()
		}
		if why := s.WhyReplaced(); !s.AtPartition && why != nil && u.Decided.Held && u.Awaits(*why) {
			before = "you: no pod is replaced, and " + why.Message
		}
		all = append(all, s.Progress(replaces, before))
	}
	return all
}

// lookAtWindow asks for a look when the maintenance window opens or closes next, as long as there is an update.
func (u *Update) lookAtWindow() {
	if changes := u.seen.Settings.WindowChanges; u.Decided.Held && !changes.IsZero() {
		u.Plan.Again(max(time.Second, changes.Sub(u.seen.Now)))
	}
}

// progress counts the pods. Surge pods do not count.
func (u *Update) progress(started time.Time) steps.Progress {
	progress := steps.Progress{Replicas: int32(u.Workload.Replicas), Started: started}
	for _, s := range u.States {
		switch {
		case s.Surge:
		case s.Turn || !s.Applied || readiness.Out(s.Pod):
			progress.Moving++
		case s.Updated && !s.Needs().Left():
			progress.Moved++
		}
	}
	return progress
}
