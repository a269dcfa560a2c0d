package steps

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/times"
)

// Draft is a plan as it grows.
type Draft struct {
	Result Plan
	// Waiting is for which image nothing restarts, one clause; empty if for none.
	Waiting string
	Beats   Beats
}

// Step adds a step.
func (d *Draft) Step(s Step) { d.Result.Steps = append(d.Result.Steps, s) }

// DismissAll deletes all pullers.
func (d *Draft) DismissAll(pullers []*corev1.Pod, why string) {
	for _, puller := range pullers {
		d.Delete(puller, why)
	}
}

// Delete deletes a puller, unless it goes already.
func (d *Draft) Delete(puller *corev1.Pod, why string) {
	if puller.DeletionTimestamp == nil {
		d.Step(DeletePuller{Pod: puller, Why: why})
	}
}

// Arrange puts first what lets pods serve, then what people are told, and last what takes pods out of service: some of it may fail.
func (d *Draft) Arrange() {
	slices.SortStableFunc(d.Result.Steps, func(a, b Step) int { return precedence(a) - precedence(b) })
}

func precedence(step Step) int {
	gate, isGate := step.(SetGate)
	_, isRecord := step.(RecordRelease)
	_, isStatus := step.(PatchStatus)
	switch {
	case isRecord, isGate && gate.Open:
		return 0
	case isStatus:
		return 1
	case Closes(step):
		return 3
	}
	return 2
}

// Together splits the steps of a plan into those that may be carried out side by side, one lot after the other.
func Together(planned []Step) [][]Step {
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
func (d *Draft) Again(after time.Duration) { d.Result.After = times.Sooner(d.Result.After, after) }

// Progress is how far the update is, and what it waits for.
func (d *Draft) Progress() string {
	if d.Waiting == "" {
		return d.Result.Progress.String()
	}
	return d.Result.Progress.String() + "; " + d.Waiting
}

// Phase says what the update is doing, in the place of what was said before.
func (d *Draft) Phase(phase Phase, message string) { d.Result.Phase, d.Result.Message = phase, message }

// recordLook is when to look at what the record has changed: the ConfigMap wakes nobody.
const recordLook = time.Second

// Record records a release.
func (d *Draft) Record(workload metav1.Object, hash string, why inplace.Reason) {
	if why.Recorded() {
		d.Step(RecordRelease{Workload: workload, Record: revisions.Record{Hash: hash, Code: why.Code}})
		d.Again(recordLook)
	}
}

// ForgetRecord forgets a release that is about another template, or over.
func (d *Draft) ForgetRecord(workload metav1.Object, recorded string, goesOn bool) {
	if recorded != "" && !goesOn {
		d.Step(ForgetRelease{Workload: workload})
	}
}

// Touched is the next value of LabelReleased: none when all is done, another one every now and then until that.
func (d *Draft) Touched(value string, unfinished bool, every time.Duration, now time.Time) string {
	if !unfinished {
		return ""
	}
	due, wait := times.Since(times.TimeOf(value), every, now)
	d.Again(wait)
	if due {
		return times.Seconds(now)
	}
	return value
}

// Tend is the next value of LabelWoken on a revision that is marked. The mark itself is the first signature.
func (d *Draft) Tend(labels map[string]string, now time.Time) string {
	due, wait := times.Since(revisions.TendedAt(labels), revisions.TendEvery, now)
	if due || !revisions.Tended(labels, now) {
		d.Again(revisions.TendEvery)
		return times.Seconds(now)
	}
	d.Again(wait)
	return labels[inplace.LabelWoken]
}
