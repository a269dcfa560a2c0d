package podstate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// An annotation of a pod can ask that containers of this pod restart (inplace.AnnotationRestartContainers). The pod keeps its revision:
// each container gets another name of the image that it has. So there is nothing to hold and nothing to go back to, whatever ends in
// between.
//
// Each container has a turn of its own: drain, patch, and Ready for minReadySeconds before the next one. The patch that restarts a
// container also notes that in the annotation. So no restart happens twice, and each manager knows from the pod alone what is next.

// Request is what such an annotation asks for.
type Request struct {
	// entries are the containers, each with the time of its restart, as "app=2030-01-01T00:00:00Z". Those that have restarted are first.
	entries []string
	// Deadline is until when a container may begin to restart; zero if that does not matter.
	Deadline time.Time
	// flaw is why the request cannot be understood; empty if it can.
	flaw string
}

// longestRequest is the greatest length of the annotation. A pod may have some hundred containers.
const longestRequest = 16 << 10

// RequestOf returns what the pod's annotation asks for, and whether the pod has one.
func RequestOf(pod *corev1.Pod) (Request, bool) {
	asked, has := pod.Annotations[inplace.AnnotationRestartContainers]
	if !has {
		return Request{}, false
	}
	if len(asked) > longestRequest {
		return Request{flaw: fmt.Sprintf("annotation %s has more than %d characters", inplace.AnnotationRestartContainers, longestRequest)}, true
	}
	r := Request{}
	for entry := range strings.SplitSeq(asked, ",") {
		r.entries = append(r.entries, strings.TrimSpace(entry))
	}
	r.flaw = r.flawOf()
	if until, has := pod.Annotations[inplace.AnnotationRestartDeadline]; has && r.flaw == "" {
		deadline, err := time.Parse(time.RFC3339, until)
		if r.Deadline = deadline; err != nil {
			r.flaw = fmt.Sprintf("annotation %s: %.100q is no time such as 2030-01-01T00:00:00Z", inplace.AnnotationRestartDeadline, until)
		}
	}
	return r, true
}

// flawOf returns why the entries are none of a request; empty if they are.
func (r Request) flawOf() string {
	seen, waiting := map[string]bool{}, false
	for _, entry := range r.entries {
		container, at, restarted := strings.Cut(entry, "=")
		_, err := time.Parse(time.RFC3339, at)
		switch {
		case container == "", restarted && (err != nil || waiting):
			return fmt.Sprintf("annotation %s: %.100q is no list of containers such as app,side", inplace.AnnotationRestartContainers,
				strings.Join(r.entries, ","))
		case seen[container]:
			return fmt.Sprintf("annotation %s names container %.100s twice", inplace.AnnotationRestartContainers, container)
		}
		seen[container], waiting = true, waiting || !restarted
	}
	if !waiting {
		return fmt.Sprintf("annotation %s names no container that has yet to restart", inplace.AnnotationRestartContainers)
	}
	return ""
}

// next returns the index of the container that restarts next.
func (r Request) next() int {
	return slices.IndexFunc(r.entries, func(entry string) bool { return !strings.Contains(entry, "=") })
}

// Container returns the container that restarts next.
func (r Request) Container() string { return r.entries[r.next()] }

// Begun reports whether a container has restarted for the request.
func (r Request) Begun() bool { return r.next() > 0 }

// Asking is a pod whose annotation asks for restarts.
type Asking struct {
	Request
	// Pod is the pod as it is.
	Pod *State
	// Next is the pod as one whose next container has yet to restart, and which needs nothing else; nil if the request has a flaw, or if the
	// pod has no such container.
	Next *State
	// none: the request was withdrawn, or a new pod has it from its template, and runs anew anyway.
	none bool
}

// AskingOf returns the pod with its request.
func AskingOf(s *State) Asking {
	r, has := RequestOf(s.Pod)
	of, its := s.TemplateAnnotations[inplace.AnnotationRestartContainers]
	if its && of == s.Pod.Annotations[inplace.AnnotationRestartContainers] {
		return Asking{Pod: s, none: true}
	}
	if !has || r.flaw != "" || edit.Named(&s.Pod.Spec, r.Container()) == nil {
		return Asking{Request: r, Pod: s, none: !has}
	}
	next, container := *s, r.Container()
	next.Containers = edit.ContainerChanges{edit.RestartOf(s.Pod, s.TemplateContainers, container, runs(s.Pod)(container))}
	next.Updated = false // for Drains
	return Asking{Request: r, Pod: s, Next: &next}
}

// Restart returns the patch by which the next container restarts. If the API server refuses it, so is the request.
func (a Asking) Restart(drained bool, now time.Time) steps.PatchPod {
	pod, does := a.Pod.Pod, edit.Change{Containers: a.Next.Containers}
	hash := cmp.Or(pod.Labels[inplace.LabelTemplateHash], pod.Labels[inplace.LabelRevisionHash])
	mark := a.Pod.Move.Next(pod, hash, a.Pod.Move.Pending(pod, now), does, now)
	noted := patches.SetEntries("annotations", pod.Annotations, a.entriesAfter(now)...)
	step := a.Next.Patch(Write{Does: does, Ends: EndsBack}, drained, mark, noted, a.Why())
	step.Asked = a.Container()
	step.Instead = a.refuse
	return step
}

// Why returns what the pod restarts for, one clause.
func (a Asking) Why() string { return "restart " + a.Container() + ", as its annotation asks" }

// StopsNow reports whether the pod was patched after it was taken out of service. Then it goes back before anything else happens to it.
func (a Asking) StopsNow() bool {
	return readiness.Out(a.Pod.Pod) && a.Pod.Move.PatchedSinceOut(a.Pod.Pod)
}

// awaitsTurn reports whether nothing in the pod itself keeps its next container from restarting.
func (a Asking) awaitsTurn() bool { return a.Pod.Available || a.Pod.Serving && !a.Begun() }

// progress returns the progress of the pod.
func (a Asking) progress() (PodPhase, string) {
	switch {
	case a.awaitsTurn():
		return Waiting, "the restart of " + a.Container() + ", which its annotation asks for"
	case readiness.Out(a.Pod.Pod) && !a.StopsNow():
		return Updating, a.Pod.awaitsPatch()
	}
	return Updating, a.Pod.awaits()
}
