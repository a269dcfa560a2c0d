package podstate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// A pod says in an annotation (inplace.AnnotationRestarted) what becomes of its request: that it waits, that it is refused, or that the
// containers have restarted. The last two end the request. While it waits, the pod says so once, and its deadline counts.
//
// In a namespace without Stayput's label nothing answers a request, apart from one that was told to wait, or that has begun: then the label
// was there before. An admission policy allows no other answer there (manifests/base/own-power.yaml).

const (
	answersRestarted = "restarted "
	answersRefused   = "refused "
	// AnswersWaiting begins the answer of a request that waits. The policy for Stayput's own power knows it.
	AnswersWaiting = "waiting "
)

// Circumstances decide, besides the pod itself, what becomes of its request.
type Circumstances struct {
	Rules inplace.Rules
	// Nodes are the nodes that are known, by name.
	Nodes map[string]*corev1.Node
	Now   time.Time
	// Unmanaged is why Stayput leaves the workload alone; nil if it does not.
	Unmanaged *inplace.Reason
	// Update is the update that requests wait for, whichever controller makes it; empty if none is in progress.
	Update string
	// Never is why no pod that serves may restart; empty if some may.
	Never string
}

// MayAnswer reports whether the pod of a workload with that mode has a request that Stayput answers, or an answer to take back.
func MayAnswer(pod *corev1.Pod, mode inplace.Mode) bool {
	request, asks := RequestOf(pod)
	begun := asks && request.flaw == "" && request.Begun()
	return asks && mode != inplace.ModeNone || begun || saysWaiting(pod)
}

// saysWaiting reports whether the pod says that its request waits.
func saysWaiting(pod *corev1.Pod) bool {
	return strings.HasPrefix(pod.Annotations[inplace.AnnotationRestarted], AnswersWaiting)
}

// Answer returns the step by which the pod says what becomes of its request, and whether there is such a step. Where the pod is out of
// service for its request, it is put back before the request is refused.
func (a Asking) Answer(c Circumstances) (step steps.PatchPod, has bool) {
	refused := a.refused(c)
	waits := fmt.Sprintf("%s%s: %s is in progress", AnswersWaiting, strings.Join(a.entries, ","), c.Update)
	switch {
	case a.none, refused == "" && c.Update == "":
		return a.answered("its request waits no longer", [2]string{inplace.AnnotationRestarted, ""}), saysWaiting(a.Pod.Pod)
	case refused != "":
		return a.refuse(refused), c.Update != "" || !readiness.Out(a.Pod.Pod)
	default:
		step = a.answered("its request waits: "+c.Update, [2]string{inplace.AnnotationRestarted, waits})
		step.Waits = fmt.Sprintf("%s waits: %s is in progress", strings.Join(a.entries, ","), c.Update)
		return step, a.Pod.Pod.Annotations[inplace.AnnotationRestarted] != waits
	}
}

// MayBegin reports whether the next container may restart now, as far as the request is concerned.
func (a Asking) MayBegin(c Circumstances) bool {
	return !a.none && a.refused(c) == "" && c.Update == "" && !saysWaiting(a.Pod.Pod)
}

// refused returns why the request is not met, now or later; empty if it may be. During an update, the containers may get other images.
func (a Asking) refused(c Circumstances) string {
	switch {
	case a.none:
		return ""
	case c.Unmanaged != nil:
		return c.Unmanaged.Message
	case a.flaw != "":
		return a.flaw
	}
	if forbidden := a.forbidden(c.Rules); forbidden != "" || c.Update != "" {
		return cmp.Or(forbidden, a.late(c))
	}
	nameless, virtual, never := "", ptr.Deref(OnVirtualNode(c.Nodes[a.Pod.Pod.Spec.NodeName]), inplace.Reason{}), ""
	if runs(a.Pod.Pod)(a.Container()) != "" { // otherwise another name of its image may be known later
		nameless = a.Next.noOtherName()
	}
	if a.Pod.Serving {
		never = c.Never
	}
	return cmp.Or(nameless, a.late(c), virtual.Message, never)
}

// forbidden returns why a container of the request must not restart.
func (a Asking) forbidden(rules inplace.Rules) string {
	for _, container := range a.entries[a.next():] {
		if reasons := edit.ForbidsRestart(&a.Pod.Pod.Spec, container, rules); len(reasons) > 0 {
			return reasons.String()
		}
	}
	return ""
}

// late returns that the deadline has passed.
func (a Asking) late(c Circumstances) string {
	if a.Deadline.IsZero() || c.Now.Before(a.Deadline) {
		return ""
	}
	waited := c.Update
	switch {
	case waited != "":
	case a.awaitsTurn():
		waited = "its turn"
	default:
		waited = a.Pod.awaits()
	}
	return fmt.Sprintf("%s has passed, and container %s waited for %s", a.Deadline.UTC().Format(time.RFC3339), a.Container(), waited)
}

// refuse returns the step that drops the request, and says why.
func (a Asking) refuse(why string) steps.PatchPod {
	result := answersRefused + why
	if a.flaw == "" {
		result = fmt.Sprintf("%s%s: %s", answersRefused, strings.Join(a.entries, ","), why)
	}
	step := a.answered("the request for a restart is refused: "+why, ended(result)...)
	step.Refuses = why
	return step
}

// answered returns the step that sets those annotations of the pod.
func (a Asking) answered(why string, entries ...[2]string) steps.PatchPod {
	step := a.Pod.Annotated(why, entries...)
	step.Answers = true
	return step
}

// entriesAfter returns the annotations of the pod once the next container has restarted.
func (r Request) entriesAfter(now time.Time) [][2]string {
	entries, next := slices.Clone(r.entries), r.next()
	entries[next] += "=" + now.UTC().Format(time.RFC3339)
	if next < len(entries)-1 {
		return [][2]string{{inplace.AnnotationRestartContainers, strings.Join(entries, ",")}}
	}
	return ended(answersRestarted + strings.Join(entries, ","))
}

// ended returns the annotations of a pod whose request has come to an end.
func ended(result string) [][2]string {
	return [][2]string{{inplace.AnnotationRestartContainers, ""}, {inplace.AnnotationRestartDeadline, ""},
		{inplace.AnnotationRestarted, result}}
}
