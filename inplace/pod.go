package inplace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// member is a live pod, and what the update needs of it.
type member struct {
	pod   *corev1.Pod
	owner *replicaSet
	move  Move
	// current is the ReplicaSet whose images the pod has: its owner, except half-way through the update of an ungated pod.
	current *ReplicaSet
	// change is what the pod needs to become one of the target.
	change Change
	// available as natively (Ready for minReadySeconds), and neither being drained nor still what it was before a patch.
	available bool
	// arrived: its containers have followed the last patch.
	arrived bool
	// turn: its gate is closed because it is to be patched next.
	turn bool
}

// live is IsPodActive of pkg/controller/controller_utils.go, and so what status.replicas of a ReplicaSet counts.
func live(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

func (v *view) member(pod *corev1.Pod, owner *replicaSet) *member {
	m := &member{pod: pod, owner: owner, move: moveOf(pod), current: owner.rs}
	if rs := v.withHash(m.move.Hash); rs != nil && !gated(pod) {
		m.current = rs
	}
	m.change = v.changeFrom(m.current)
	arrived, wait := m.move.arrived(pod, v.Now)
	available, later := availableAt(pod, v.Deployment.Spec.MinReadySeconds, v.Now)
	m.arrived, m.available = arrived, available && arrived && !closed(pod)
	v.again(sooner(wait, later))
	return m
}

// availableAt is IsPodAvailable of pkg/api/v1/pod/util.go; if it is only a matter of time, of how much.
func availableAt(pod *corev1.Pod, minReadySeconds int32, now time.Time) (bool, time.Duration) {
	ready := condition(pod, corev1.PodReady)
	switch {
	case ready == nil || ready.Status != corev1.ConditionTrue:
		return false, 0
	case minReadySeconds == 0:
		return true, 0
	case ready.LastTransitionTime.IsZero():
		return false, 0
	}
	return since(ready.LastTransitionTime.Time, time.Duration(minReadySeconds)*time.Second, now)
}

// restarts tells whether the pod has to be patched with images.
func (m *member) restarts() bool { return len(m.change.Images) > 0 }

// drained tells whether the pod, whose turn it is, serves no more.
func (m *member) drained() bool { return m.turn && !isTrue(m.pod, corev1.PodReady) }

// halfway tells whether the pod has the images of one ReplicaSet and the identity of another.
func (m *member) halfway() bool { return m.current != m.owner.rs }

// rewritten tells of an image that is not the template's: another webhook changed it at birth, and would have changed the
// new one too.
func (m *member) rewritten(templateContainers []corev1.Container) *Reason {
	for _, want := range templateContainers {
		for _, have := range m.pod.Spec.Containers {
			if have.Name == want.Name && have.Image != want.Image {
				return &Reason{Code: CodeRewrittenImage, Message: fmt.Sprintf(
					"container %s of pod %s has image %q although its template says %q", have.Name, m.pod.Name, have.Image, want.Image)}
			}
		}
	}
	return nil
}

// moveTo makes the pod one of the target: images and identity at once, so that at every moment label and owner say what its
// spec is. The identity is what changes from its owner's template to the target's.
func (m *member) moveTo(target *ReplicaSet, identity Change, now time.Time) PatchPod {
	mark := m.move.next(m.pod, target.Labels[labelTemplateHash], m.change.Images, now)
	marked, patch := m.marked(mark)
	patch = append(patch, operations(m.change, marked, m.current, target, true)...)
	patch = append(patch, operations(identity, marked, m.owner.rs, target, false)...)
	patch = append(patch, setEntries("labels", m.pod.Labels, [2]string{labelTemplateHash, target.Labels[labelTemplateHash]})...)
	patch = append(patch, reown(m.pod, target)...)
	return PatchPod{Pod: m.pod, Moves: true, Operations: guarded(m.pod, patch...),
		Why: fmt.Sprintf("move from %s to %s, %s", m.owner.rs.Name, target.Name, m.change)}
}

// become gives the pod the images of the ReplicaSet and leaves its identity as it is. The change leads there from the
// pod's current ReplicaSet.
func (m *member) become(rs *ReplicaSet, change Change, now time.Time) PatchPod {
	marked, patch := m.marked(m.move.next(m.pod, rs.Labels[labelTemplateHash], change.Images, now))
	patch = append(patch, operations(change, marked, m.current, rs, true)...)
	return PatchPod{Pod: m.pod, Operations: guarded(m.pod, patch...), Why: fmt.Sprintf("images of %s, %s", rs.Name, change)}
}

// marked returns the pod with the mark, and the operations that put it there.
func (m *member) marked(mark Move) (*corev1.Pod, []jsonpatch.Operation) {
	pod := m.pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, AnnotationMove, mark.String())
	return pod, setEntries("annotations", m.pod.Annotations, [2]string{AnnotationMove, mark.String()})
}

// operations are those of the change that concern the pod's spec, or those that do not.
func operations(change Change, pod *corev1.Pod, from, to *ReplicaSet, spec bool) []jsonpatch.Operation {
	if change.None() {
		return nil
	}
	return slices.DeleteFunc(change.PodOperations(pod, from.Spec.Template, to.Spec.Template), func(operation jsonpatch.Operation) bool {
		return strings.HasPrefix(operation.Path, "/spec/") != spec
	})
}

// reown makes the ReplicaSet the pod's controller, in the place of the one it has.
func reown(pod *corev1.Pod, rs *ReplicaSet) []jsonpatch.Operation {
	for i, owner := range pod.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			at := fmt.Sprintf("/metadata/ownerReferences/%d", i)
			return []jsonpatch.Operation{
				jsonpatch.NewOperation("replace", at+"/name", rs.Name),
				jsonpatch.NewOperation("replace", at+"/uid", rs.UID),
			}
		}
	}
	return nil
}
