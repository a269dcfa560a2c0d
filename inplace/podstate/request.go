package podstate

import (
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
		r.Deadline, r.flaw = deadlineOf(until)
	}
	return r, true
}

func deadlineOf(text string) (time.Time, string) {
	deadline, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Sprintf("annotation %s: %.100q is no time such as 2030-01-01T00:00:00Z", inplace.AnnotationRestartDeadline, text)
	}
	return deadline, ""
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

// containers returns the containers that have yet to restart.
func (r Request) containers() []string { return r.entries[r.next():] }

// entriesAfter returns the annotations of the pod once the next container has restarted.
func (r Request) entriesAfter(now time.Time) [][2]string {
	entries, next := slices.Clone(r.entries), r.next()
	entries[next] += "=" + now.UTC().Format(time.RFC3339)
	if next < len(entries)-1 {
		return [][2]string{{inplace.AnnotationRestartContainers, strings.Join(entries, ",")}}
	}
	return ended("restarted " + strings.Join(entries, ","))
}

// ended returns the annotations of a pod whose request has come to an end.
func ended(result string) [][2]string {
	return [][2]string{{inplace.AnnotationRestartContainers, ""}, {inplace.AnnotationRestartDeadline, ""},
		{inplace.AnnotationRestarted, result}}
}

// RefuseRequest returns the step that drops the request, and says why.
func (s *State) RefuseRequest(r Request, why string) steps.PatchPod {
	result := "refused " + why
	if r.flaw == "" {
		result = fmt.Sprintf("refused %s: %s", strings.Join(r.entries, ","), why)
	}
	step := s.Annotated("the request for a restart is refused: "+why, ended(result)...)
	step.Refuses = why
	return step
}

// WhyRefused returns why the request cannot be met, now or later; empty if it can. The rules are those of the workload.
func (s *State) WhyRefused(r Request, rules inplace.Rules, now time.Time) string {
	if r.flaw != "" {
		return r.flaw
	}
	for _, container := range r.containers() {
		if reasons := edit.ForbidsRestart(&s.Pod.Spec, container, rules); len(reasons) > 0 {
			return reasons.String()
		}
	}
	if asked := s.AskedBy(r); asked.noOtherName() != "" && runs(s.Pod)(r.Container()) != "" {
		return asked.noOtherName()
	}
	if !r.Deadline.IsZero() && !now.Before(r.Deadline) {
		return fmt.Sprintf("%s has passed, and container %s waited for %s", r.Deadline.UTC().Format(time.RFC3339), r.Container(), s.waitedFor())
	}
	return ""
}

func (s *State) waitedFor() string {
	if s.Available {
		return "its turn"
	}
	return s.awaits()
}

// AskedBy returns the pod as one whose next container of the request has yet to restart, and which needs nothing else.
func (s *State) AskedBy(r Request) *State {
	asked, container := *s, r.Container()
	asked.Containers = edit.ContainerChanges{edit.RestartOf(s.Pod, s.TemplateContainers, container, runs(s.Pod)(container))}
	asked.Updated = false // for Drains
	return &asked
}

// Restart returns the patch by which the next container of the request restarts: AskedBy has returned this state. If the API server refuses
// it, so is the request.
func (s *State) Restart(r Request, drained bool, now time.Time) steps.PatchPod {
	does := edit.Change{Containers: s.Containers}
	mark := s.Move.Next(s.Pod, revisionLabel(s.Pod), s.Move.Pending(s.Pod, now), does, now)
	noted := patches.SetEntries("annotations", s.Pod.Annotations, r.entriesAfter(now)...)
	step := s.Patch(Write{Does: does, Ends: EndsBack}, drained, mark, noted, "restart "+r.Container()+", as its annotation asks")
	step.Asked = r.Container()
	step.Instead = func(why string) steps.PatchPod { return s.RefuseRequest(r, why) }
	return step
}

// revisionLabel returns the label by which the pod names its revision.
func revisionLabel(pod *corev1.Pod) string {
	if hash, has := pod.Labels[inplace.LabelTemplateHash]; has {
		return hash
	}
	return pod.Labels[inplace.LabelRevisionHash]
}

// StopsNow reports whether the pod was patched after its gate had closed. Then the gate opens before it closes for the next container.
func (s *State) StopsNow() bool { return readiness.Closed(s.Pod) && s.Move.PatchedSinceGate(s.Pod) }
