package steps

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
)

// PlanBuilder is a plan as it is built.
type PlanBuilder struct {
	Result Plan
	// Waiting is what the update waits for, in place of what its pods wait for, one clause; empty for nothing else.
	Waiting string
	Batches Batches
}

// Step adds a step.
func (d *PlanBuilder) Step(s Step) { d.Result.Steps = append(d.Result.Steps, s) }

// DeletePrePullPods deletes all pre-pull pods.
func (d *PlanBuilder) DeletePrePullPods(prePullPods []*corev1.Pod, why string) {
	for _, prePullPod := range prePullPods {
		d.Delete(prePullPod, why)
	}
}

// Delete deletes a pre-pull pod, unless it is being deleted already.
func (d *PlanBuilder) Delete(prePullPod *corev1.Pod, why string) {
	if prePullPod.DeletionTimestamp == nil {
		d.Step(DeletePrePullPod{Pod: prePullPod, Why: why})
	}
}

// Arrange sorts the steps, since some of them may fail: first those that let pods serve, then the status for users, and last those that
// take pods out of service.
func (d *PlanBuilder) Arrange() {
	slices.SortStableFunc(d.Result.Steps, func(a, b Step) int { return precedence(a) - precedence(b) })
}

func precedence(step Step) int {
	ready, isReady := step.(SetReady)
	_, isPersist := step.(PersistFallback)
	_, isStatus := step.(PatchStatus)
	switch {
	case isPersist, isReady && !ready.Out:
		return 0
	case isStatus:
		return 1
	case TakesOut(step):
		return 3
	}
	return 2
}

// Lots splits the steps of a plan into lots. The steps of a lot may be carried out side by side, the lots one after the other.
func Lots(planned []Step) [][]Step {
	var lots [][]Step
	for i, step := range planned {
		if i == 0 || precedence(step) != precedence(planned[i-1]) {
			lots = append(lots, nil)
		}
		lots[len(lots)-1] = append(lots[len(lots)-1], step)
	}
	return lots
}

// Again asks for another look after that time; 0 for none.
func (d *PlanBuilder) Again(after time.Duration) {
	d.Result.After = inplace.Sooner(d.Result.After, after)
}

// Progress returns the progress of the update, and what it waits for.
func (d *PlanBuilder) Progress() string {
	progress := d.Result.Images.After(d.Result.Progress.String())
	if waiting := cmp.Or(d.Waiting, d.Awaits()); waiting != "" {
		progress += "; " + waiting
	}
	return progress
}

// Phase sets what the update is doing, in place of what was set before.
func (d *PlanBuilder) Phase(phase Phase, message string) {
	d.Result.Phase, d.Result.Message = phase, message
}

// PersistFallback adds the step that persists a fallback, unless Stayput is uninstalled: the ConfigMap goes with it. No event of the
// ConfigMap starts a look.
func (d *PlanBuilder) PersistFallback(workload metav1.Object, hash string, why inplace.Reason) {
	if why.Code != inplace.CodeUninstalled {
		d.Step(PersistFallback{Workload: workload, Fallback: revisions.Fallback{Hash: hash, Code: why.Code}})
		d.Again(inplace.LookAgain)
	}
}

// ForgetFallback adds the step that removes a persisted fallback which is about another template, or over.
func (d *PlanBuilder) ForgetFallback(workload metav1.Object, fallback revisions.Fallback, goesOn bool) {
	if fallback.Hash != "" && !goesOn {
		d.Step(ForgetFallback{Workload: workload})
	}
}

// NextNudge returns the value of the next nudge: another one at each interval.
func (d *PlanBuilder) NextNudge(value string, every time.Duration, now time.Time) string {
	due, wait := inplace.Since(inplace.ParseTime(value), every, now)
	d.Again(wait)
	if due {
		return inplace.FormatTime(now)
	}
	return value
}

// NextRenewal returns the next value of LabelRenewed on a marked revision. The mark itself counts as the first renewal.
func (d *PlanBuilder) NextRenewal(labels map[string]string, now time.Time) string {
	due, wait := inplace.Since(revisions.RenewedAt(labels), revisions.RenewEvery, now)
	if due || !revisions.Renewed(labels, now) {
		d.Again(revisions.RenewEvery)
		return inplace.FormatTime(now)
	}
	d.Again(wait)
	return labels[inplace.LabelRenewed]
}
