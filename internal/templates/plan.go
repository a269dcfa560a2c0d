package templates

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/distribution/reference"
	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
)

// Rules are the rules by which edits are decided here: of a workload whose containers restart, and are resized, in their pods.
var Rules = inplace.Rules{
	Annotations: []string{NoteAnnotation}, Restart: []string{"checksum/*", inplace.AnnotationRestartedAt}, Resize: inplace.ResizeAll,
}

// Plan is how pods of one template become pods of another.
type Plan struct {
	edit.Change
	from, to corev1.PodTemplateSpec
}

// PlanOf returns the plan for the edit from one template to the other.
func PlanOf(from, to corev1.PodTemplateSpec) (Plan, error) { return planBy(Rules, from, to) }

// PlanWithoutRestarts returns the plan for a workload that lists no annotations whose change restarts containers.
func PlanWithoutRestarts(from, to corev1.PodTemplateSpec) (Plan, error) {
	rules := Rules
	rules.Restart = nil
	return planBy(rules, from, to)
}

func planBy(rules inplace.Rules, from, to corev1.PodTemplateSpec) (Plan, error) {
	before, err := parsed(from)
	if err != nil {
		return Plan{}, err
	}
	after, err := parsed(to)
	return Plan{edit.Compare(before, after, rules), from, to}, err
}

func parsed(typed corev1.PodTemplateSpec) (apps.Template, error) {
	raw, err := json.Marshal(typed)
	if err != nil {
		return apps.Template{}, err
	}
	return apps.ParseTemplate(raw)
}

// Write is a JSON patch of a pod, or of one of its subresources.
type Write struct {
	Subresource string
	Operations  []jsonpatch.Operation
}

// Possible reports whether pods of the first template can take the edit while they run, and whether the edit changes them.
func (p Plan) Possible() bool { return p.InPlace() && p.Left() && len(p.LostTolerations) == 0 }

// Writes returns the writes, in their order, that carry out the plan on a pod of the first template. The plan must be possible.
func (p Plan) Writes(pod *corev1.Pod) []Write {
	needs := p.Change
	needs.Containers = p.Containers.ChangesTo(pod, edit.Living(&p.to.Spec), running(pod), p.Resizes)
	withMark, note := marked(pod, needs.Containers)
	all := []Write{
		{Operations: note},
		{"resize", needs.Containers.ResizeOperations(pod)},
		{Operations: needs.PodOperations(withMark)},
	}
	return slices.DeleteFunc(all, func(w Write) bool { return len(w.Operations) == 0 })
}

// marked returns the pod with the mark that a resize needs, and the operations that add the mark.
func marked(pod *corev1.Pod, needs edit.ContainerChanges) (*corev1.Pod, []jsonpatch.Operation) {
	if !needs.Resizes() {
		return pod, nil
	}
	mark := readiness.Move{Resize: readiness.Resize{}.Noting(needs, time.Now())}.String()
	withMark := pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&withMark.ObjectMeta, inplace.AnnotationMove, mark)
	return withMark, patches.SetEntries("annotations", pod.Annotations, [2]string{inplace.AnnotationMove, mark})
}

// running returns a function from a container of the pod to the ID of the image that it runs.
func running(pod *corev1.Pod) func(container string) string {
	return func(container string) string {
		named, err := reference.ParseNormalizedNamed(edit.Named(&pod.Spec, container).Image)
		if err != nil {
			panic(err) // all images here are valid
		}
		return named.Name() + "@" + digest
	}
}

// AsksForRestart reports whether the edit changes an annotation whose change restarts the containers.
func (p Plan) AsksForRestart() bool {
	return slices.ContainsFunc(restartKeys, func(key string) bool {
		before, had := p.from.Annotations[key]
		after, has := p.to.Annotations[key]
		return had != has || before != after
	})
}

// Restarted returns an error if the writes, which turned one pod into the other, restart other containers than planned, or not all
// containers where a restart is asked for. A kubelet restarts a container if its image is another text than before, or if its CPU or
// memory changes and its resize policy asks for a restart.
func (p Plan) Restarted(before, after *corev1.Pod) error {
	var restarted, planned, all []string
	for container := range edit.EachLiving(&before.Spec) {
		if is := edit.Named(&after.Spec, container.Name); is.Image != container.Image || restartsFor(*container, is.Resources) {
			restarted = append(restarted, container.Name)
		}
	}
	for change := range p.Containers.Restarting() {
		planned = append(planned, change.Container)
	}
	for container := range edit.EachLiving(&p.to.Spec) {
		all = append(all, container.Name)
	}
	switch slices.Sort(restarted); {
	case !slices.Equal(restarted, slices.Sorted(slices.Values(planned))):
		return fmt.Errorf("%q restart instead of %q", restarted, planned)
	case p.AsksForRestart() && len(planned) != len(all):
		return fmt.Errorf("%q restart, and are to be %q", planned, all)
	}
	return nil
}

func restartsFor(container corev1.Container, gets corev1.ResourceRequirements) bool {
	has := container.Resources
	return slices.ContainsFunc(container.ResizePolicy, func(policy corev1.ContainerResizePolicy) bool {
		name := policy.ResourceName
		differs := !has.Requests[name].Equal(gets.Requests[name]) || !has.Limits[name].Equal(gets.Limits[name])
		return policy.RestartPolicy == corev1.RestartContainer && differs
	})
}

// OneWay returns why an edit that was made in place cannot be undone in place, as users are told; empty if it can.
func OneWay(from, to corev1.PodTemplateSpec) string {
	if moreTolerations(from, to) {
		return "a running pod loses no toleration"
	}
	return ""
}

func moreTolerations(from, to corev1.PodTemplateSpec) bool {
	return slices.ContainsFunc(to.Spec.Tolerations, func(toleration corev1.Toleration) bool {
		return !slices.ContainsFunc(from.Spec.Tolerations, func(other corev1.Toleration) bool {
			return equality.Semantic.DeepEqual(toleration, other)
		})
	})
}

// Same returns an error if one pod differs from the other in what templates say of pods. The order of tolerations does not count, nor
// do Stayput's marks, which no template has. A container may have another name of its image: see edit.IsNameOf.
func Same(is, want *corev1.Pod) error {
	a, b := said(is), said(want)
	for container := range edit.EachLiving(&a.Spec) {
		if other := edit.Named(&b.Spec, container.Name); other != nil && edit.IsNameOf(container.Image, other.Image) {
			container.Image = other.Image
		}
	}
	if equality.Semantic.DeepEqual(a, b) {
		return nil
	}
	return fmt.Errorf("the pod is\n%s\na new one would be\n%s", Text(a), Text(b))
}

// said returns the template that the pod would have.
func said(pod *corev1.Pod) corev1.PodTemplateSpec {
	var all corev1.PodTemplateSpec
	all.Labels, all.Annotations, all.Spec = pod.Labels, maps.Clone(pod.Annotations), *pod.Spec.DeepCopy()
	delete(all.Annotations, inplace.AnnotationMove)
	slices.SortFunc(all.Spec.Tolerations, func(a, b corev1.Toleration) int { return slices.Compare([]byte(Text(a)), []byte(Text(b))) })
	return all
}

// Text returns the object as JSON, for messages.
func Text(object any) string {
	text, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
