package templates

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
)

// Rules are those by which edits are judged here.
var Rules = inplace.Rules{Annotations: []string{Note}, Resize: inplace.ResizeAll}

// Plan is how pods of one template become those of another.
type Plan struct{ edit.Change }

// PlanOf compares the templates.
func PlanOf(from, to corev1.PodTemplateSpec) (Plan, error) {
	before, err := parsed(from)
	if err != nil {
		return Plan{}, err
	}
	after, err := parsed(to)
	return Plan{edit.Compare(before, after, Rules)}, err
}

func parsed(typed corev1.PodTemplateSpec) (apps.Template, error) {
	raw, err := json.Marshal(typed)
	if err != nil {
		return apps.Template{}, err
	}
	return apps.ParseTemplate(raw)
}

// Write is a JSON patch of a pod, or of a subresource of it.
type Write struct {
	Subresource string
	Operations  []jsonpatch.Operation
}

// Possible tells whether pods of the first template take the edit while they run, and get something by it.
func (p Plan) Possible() bool { return p.InPlace() && p.Left() && len(p.Displaced) == 0 }

// Writes are those that make the plan with a pod of the first template, in their order; it must be possible.
func (p Plan) Writes(pod *corev1.Pod) []Write {
	all := []Write{
		{Operations: p.note(pod)},
		{"resize", p.Containers.ResizeOperations(pod)},
		{Operations: p.PodOperations(pod)},
	}
	return slices.DeleteFunc(all, func(w Write) bool { return len(w.Operations) == 0 })
}

// note is the mark without which no pod is resized.
func (p Plan) note(pod *corev1.Pod) []jsonpatch.Operation {
	if !p.Containers.Resizes() {
		return nil
	}
	mark := readiness.Move{Resize: readiness.Move{}.Noting(p.Containers, time.Now())}
	return patches.SetEntries("annotations", pod.Annotations, [2]string{inplace.AnnotationMove, mark.String()})
}

// irreversible is what can be made in place and not be taken back so, as users are told.
var irreversible = []struct {
	why   string
	found func(from, to corev1.PodTemplateSpec) bool
}{
	{"a running pod loses no toleration", moreTolerations},
}

// OneWay says why an edit that was made in place cannot be taken back in place; empty if it can.
func OneWay(from, to corev1.PodTemplateSpec) string {
	for _, kind := range irreversible {
		if kind.found(from, to) {
			return kind.why
		}
	}
	return ""
}

func moreTolerations(from, to corev1.PodTemplateSpec) bool {
	return slices.ContainsFunc(to.Spec.Tolerations, func(toleration corev1.Toleration) bool {
		return !slices.ContainsFunc(from.Spec.Tolerations, func(other corev1.Toleration) bool { return equality.Semantic.DeepEqual(toleration, other) })
	})
}

// Same says why one pod is not as the other in what templates say of pods; nil if it is. The order of tolerations means nothing, and our mark is no
// template's.
func Same(is, want *corev1.Pod) error {
	a, b := said(is), said(want)
	if equality.Semantic.DeepEqual(a, b) {
		return nil
	}
	return fmt.Errorf("the pod is\n%s\na new one would be\n%s", Text(a), Text(b))
}

// said is the pod as a template would have it.
func said(pod *corev1.Pod) corev1.PodTemplateSpec {
	var all corev1.PodTemplateSpec
	all.Labels, all.Annotations, all.Spec = pod.Labels, maps.Clone(pod.Annotations), *pod.Spec.DeepCopy()
	delete(all.Annotations, inplace.AnnotationMove)
	slices.SortFunc(all.Spec.Tolerations, func(a, b corev1.Toleration) int { return slices.Compare([]byte(Text(a)), []byte(Text(b))) })
	return all
}

// Text is the object as JSON, for messages.
func Text(object any) string {
	text, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
