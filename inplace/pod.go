package inplace

import (
	"fmt"
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
	// images are those the pod needs to become one of the target.
	images []ImageChange
	// halfway: it has other images than its owner's template, as an ungated pod has in the middle of its update.
	halfway []ImageChange
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
	m := &member{pod: pod, owner: owner, move: moveOf(pod), halfway: differing(pod, v.containersOf(owner.rs))}
	if v.verdict.Target != nil {
		m.images = differing(pod, v.containersOf(v.verdict.Target))
	}
	arrived, wait := m.move.arrived(pod, v.Now)
	available, later := availableAt(pod, v.Deployment.Spec.MinReadySeconds, v.Now)
	m.arrived, m.available = arrived, available && arrived && !closed(pod)
	v.again(sooner(wait, later))
	return m
}

// differing are the containers of the pod that have another image than those of the template.
func differing(pod *corev1.Pod, template []corev1.Container) []ImageChange {
	var images []ImageChange
	for _, want := range template {
		for _, have := range pod.Spec.Containers {
			if have.Name == want.Name && have.Image != want.Image {
				images = append(images, ImageChange{Container: have.Name, From: have.Image, To: want.Image})
			}
		}
	}
	return images
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
func (m *member) restarts() bool { return len(m.images) > 0 }

// ready tells whether the pod serves, even if not yet for minReadySeconds.
func (m *member) ready() bool { return isTrue(m.pod, corev1.PodReady) }

// drained tells whether the pod, whose turn it is, serves no more.
func (m *member) drained() bool { return m.turn && !m.ready() }

// rewritten tells of an image that is neither the template's nor from us: another webhook changed it at birth, and would have
// changed the new one too.
func (m *member) rewritten() *Reason {
	for _, image := range m.halfway {
		if m.move.Containers[image.Container].Image != image.From || gated(m.pod) {
			return &Reason{Code: CodeRewrittenImage, Message: fmt.Sprintf(
				"container %s of pod %s has image %q although its template says %q", image.Container, m.pod.Name, image.From, image.To)}
		}
	}
	return nil
}

// moveTo makes the pod one of the target: images and identity at once, so that at every moment label and owner say what its
// spec is. The change is that from its owner's template to the target's.
func (m *member) moveTo(target *ReplicaSet, change Change, now time.Time) PatchPod {
	hash := target.Labels[labelTemplateHash]
	marked, patch := m.marked(m.move.next(m.pod, hash, m.move.pending(m.pod, now), m.images, now))
	change.Images = m.images
	patch = append(patch, change.PodOperations(marked, m.owner.rs.Spec.Template, target.Spec.Template)...)
	patch = append(patch, setEntries("labels", m.pod.Labels, [2]string{labelTemplateHash, hash})...)
	patch = append(patch, reown(m.pod, target)...)
	return PatchPod{Pod: m.pod, Moves: true, Operations: guarded(m.pod, patch...),
		Why: fmt.Sprintf("move from %s to %s, %s", m.owner.rs.Name, target.Name, change)}
}

// become gives the pod the images of the ReplicaSet and leaves its identity as it is.
func (m *member) become(rs *ReplicaSet, images []ImageChange, now time.Time) PatchPod {
	marked, patch := m.marked(m.move.next(m.pod, rs.Labels[labelTemplateHash], m.move.Containers, images, now))
	change := Change{Images: images}
	patch = append(patch, change.PodOperations(marked, Template{}, Template{})...)
	return PatchPod{Pod: m.pod, Operations: guarded(m.pod, patch...), Why: fmt.Sprintf("images of %s, %s", rs.Name, change)}
}

// marked returns the pod with the mark, and the operations that put it there.
func (m *member) marked(mark Move) (*corev1.Pod, []jsonpatch.Operation) {
	pod := m.pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, AnnotationMove, mark.String())
	return pod, setEntries("annotations", m.pod.Annotations, [2]string{AnnotationMove, mark.String()})
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
