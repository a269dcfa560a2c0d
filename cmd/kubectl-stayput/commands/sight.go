package commands

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// sight is what was read of a workload at one time.
type sight struct {
	kind    observe.Kind
	rollout engine.Rollout
	events  []corev1.Event
	// done is whether the update is over.
	done bool
}

func (s sight) print(out io.Writer) error {
	workload := s.rollout.Workload()
	fmt.Fprintf(out, "%s %s/%s\n", s.kind.Workload.Name, workload.GetNamespace(), workload.GetName())
	fmt.Fprintf(out, "Mode:       %s\n", cmp.Or(string(s.rollout.Snapshot().Mode), string(inplace.ModeNative)))
	fmt.Fprintf(out, "Last edit:  %s\n", s.lastEdit())
	fmt.Fprintf(out, "Update:     %s\n\n", s.update())
	if err := s.printPods(out); err != nil {
		return err
	}
	s.printEvents(out)
	return nil
}

// lastEdit returns the decision on the last edit of the template.
func (s sight) lastEdit() string {
	workload := s.rollout.Workload()
	if decided := steps.DecidedOn(workload, s.rollout.TemplateHash()); decided != "" {
		return oneLine(decided)
	}
	if _, earlier := workload.GetAnnotations()[inplace.AnnotationDecision]; earlier {
		return "no manager was asked about it"
	}
	return "-"
}

// update returns one line about the whole update. Marks count more than the plugin's own decision: the leader, which sets them, knows
// Stayput's flags, and the plugin does not.
func (s sight) update() string {
	snapshot, decision, counts := s.rollout.Snapshot(), s.rollout.Decision(), s.counts()
	switch {
	case !snapshot.Mode.Manages():
		return snapshot.Mode.Reason().Message + "; " + counts
	case decision.Waits:
		return "waits, and no pod is replaced: " + decision.Reasons.String() + "; " + counts
	case engine.Marked(s.rollout):
		return "in place, " + counts + s.rest()
	case s.done:
		return "none, " + counts
	case len(decision.Reasons) > 0:
		return "native: " + decision.Reasons.String() + "; " + counts
	}
	return "not begun by Stayput, " + counts
}

// rest returns how long the rest of the update takes; empty if the pods do not say.
func (s sight) rest() string {
	workload, snapshot := s.rollout.Workload(), s.rollout.Snapshot()
	left := s.are(podstate.Waiting) + s.are(podstate.Updating)
	preview := s.rollout.Preview(*workload.(apps.Workload).PodTemplate())
	about := snapshot.AboutDuration(preview, left, edit.Restarted(steps.DecidedOn(workload, s.rollout.TemplateHash())))
	if about == "" {
		return ""
	}
	return "; the rest " + about
}

func (s sight) counts() string {
	counts := fmt.Sprintf("%d of %d pods updated", s.are(podstate.Updated), len(s.rollout.PodProgress()))
	if kept := s.are(podstate.AtPartition); kept > 0 {
		counts += fmt.Sprintf(", %d at the partition", kept)
	}
	if s.rollout.Snapshot().Nodes == nil { // they say which images they have
		return counts
	}
	return s.rollout.Images().After(counts)
}

// are returns how many pods are in that phase.
func (s sight) are(phase podstate.PodPhase) int {
	count := 0
	for _, pod := range s.rollout.PodProgress() {
		if pod.Phase == phase {
			count++
		}
	}
	return count
}

func (s sight) printPods(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "POD\tNODE\tREVISION\tSTATE\tWAITS FOR")
	for _, each := range s.rollout.PodProgress() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n",
			each.Pod.Name, cmp.Or(each.Pod.Spec.NodeName, "-"), cmp.Or(each.Revision, "-"), each.Phase, cmp.Or(each.Awaits, "-"))
	}
	return table.Flush()
}

// mostEvents is how many events are shown: the last ones.
const mostEvents = 5

func (s sight) printEvents(out io.Writer) {
	if len(s.events) > 0 {
		fmt.Fprintln(out, "\nEvents (UTC):")
	}
	for _, e := range s.events[max(0, len(s.events)-mostEvents):] {
		fmt.Fprintf(out, "  %s  %s: %s\n", timeOf(e).UTC().Format(time.TimeOnly), e.Reason, oneLine(e.Message))
	}
}

// timeOf returns when the event happened. Events of events.k8s.io/v1 have an EventTime, and none of the older API's times.
func timeOf(e corev1.Event) time.Time {
	if e.EventTime.IsZero() {
		return e.CreationTimestamp.Time
	}
	return e.EventTime.Time
}

// watching returns how an update is shown while it runs: on a terminal by a bar, and at its end as a whole; otherwise as a whole whenever
// something has changed.
func watching(out io.Writer) func(sight) error {
	if line, is := progress(out); is {
		return barOf(line, out)
	}
	told := teller{out: out}
	return func(now sight) error {
		var text bytes.Buffer
		err := now.print(&text)
		told.say("%s", text.String())
		return err
	}
}

// barOf returns how a bar shows an update.
func barOf(line progressLine, out io.Writer) func(sight) error {
	return func(now sight) error {
		if now.done {
			line.clear()
			return now.print(out)
		}
		line.show(now.are(podstate.Updated), len(now.rollout.PodProgress()), now.update()+now.awaits())
		return nil
	}
}

// awaits returns what the pods that are being updated wait for.
func (s sight) awaits() string {
	text := ""
	for _, each := range s.rollout.PodProgress() {
		if each.Phase == podstate.Updating {
			text += fmt.Sprintf("; %s waits for %s", each.Pod.Name, each.Awaits)
		}
	}
	return text
}
