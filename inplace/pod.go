package inplace

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podState is a live pod, and what an update needs of it, whatever the kind of its workload.
type podState struct {
	pod  *corev1.Pod
	move Move
	// images are those the pod needs to become one of the target.
	images []ImageChange
	// rewritten are the images it has that are neither its revision's template's nor halfway: admission has changed them.
	rewritten []ImageChange
	// halfway: it has images of another revision than its labels say, as an ungated pod of a Deployment in the middle of its update.
	halfway []ImageChange
	// available as natively (Ready for minReadySeconds), neither being drained nor still what it was before a patch, and not for a moment only.
	available bool
	// comes is when it will be available if that is only a matter of time; 0 if it is not, or is already.
	comes time.Duration
	// arrived: its containers have followed the last patch.
	arrived bool
	// lacks is what it waits for before it may restart: see prePull; empty if for nothing.
	lacks string
	// turn: its gate is closed because it is to be patched next, or to go.
	turn bool
	// drainsSoon: it has a turn and is not drained, but may be within a beat.
	drainsSoon bool
	// unheard: nobody hears of its kubelet, and somebody looks again when it is back. Where the API server says what is Ready (ready.go), a gate
	// that opens would have the pod Ready for as long as the node is away.
	unheard bool
	// borrowed: it exists only while others are updated. goes: it is given back.
	borrowed, goes bool
}

// member is a live pod of a Deployment.
type member struct {
	podState
	owner *replicaSet
	// lost: nobody would act on a patch of the pod, and it does not serve. Only another pod can take its place.
	lost bool
}

// live is IsPodActive of pkg/controller/controller_utils.go, and so what status.replicas of a ReplicaSet counts.
func live(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !terminal(pod)
}

func (v *view) member(pod *corev1.Pod, owner *replicaSet) *member {
	isTargets := owner == v.target
	return &member{podState: v.state(pod, v.containersOf(owner.rs), v.rehearsed, isTargets, v.Deployment.Spec.MinReadySeconds, v.Now), owner: owner}
}

// state looks at a pod that was made from a template with its own containers. One that is the target's already needs no images, whatever
// admission would make of a new one, unless it was on its way elsewhere.
func (d *draft) state(pod *corev1.Pod, own []corev1.Container, target rehearsed, isTargets bool, minReadySeconds int32, now time.Time) podState {
	s := podState{pod: pod, move: moveOf(pod), borrowed: pod.Annotations[AnnotationBorrowed] != "", goes: goes(pod)}
	s.halfway, s.images = s.move.halfway(pod), differing(pod, target.containers)
	if isTargets {
		s.images = s.halfway
	}
	s.rewritten = slices.DeleteFunc(differing(pod, own), func(image ImageChange) bool { return s.move.Back[image.Container] != "" })
	arrived, wait := s.move.arrived(pod, now)
	available, later := availableAt(pod, minReadySeconds, now)
	lasting, longer := d.lasting(pod, now)
	s.arrived, s.available = arrived, available && arrived && lasting && !Closed(pod)
	d.again(sooner(wait, sooner(later, longer)))
	if arrived && !Closed(pod) {
		s.comes = max(later, longer)
	}
	return s
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
	case !IsTrue(pod, corev1.PodReady):
		return false, 0
	case minReadySeconds == 0:
		return true, 0
	case ready.LastTransitionTime.IsZero():
		return false, 0
	}
	return since(ready.LastTransitionTime.Time, time.Duration(minReadySeconds)*time.Second, now)
}

// restarts tells whether the pod has to be patched with images.
func (s *podState) restarts() bool { return len(s.images) > 0 }

// toRestart tells whether that is for this update to do: a borrowed pod is given back as it is.
func (s *podState) toRestart() bool { return s.restarts() && !s.borrowed }

// ready tells whether the pod serves, even if not yet for minReadySeconds.
func (s *podState) ready() bool { return IsTrue(s.pod, corev1.PodReady) }

// youth is how long a newborn pod is left to start.
const youth = 10 * time.Second

// starting tells whether the pod was born too recently to be taken for one that does not serve anyway; for how much longer. Its
// kubelet could report it Ready before it knows that the gate is closed, and then take it down beyond all budgets.
func (s *podState) starting(now time.Time) (bool, time.Duration) {
	grown, wait := since(s.pod.CreationTimestamp.Time, youth, now)
	return !grown && !s.ready(), wait
}

// moveTo makes the pod one of the target: images and identity at once, so that at every moment label and owner say what its
// spec is. The change is that from its owner's template to the target's.
func (m *member) moveTo(target *ReplicaSet, change Change, now time.Time) PatchPod {
	hash := target.Labels[labelTemplateHash]
	marked, patch := m.withMove(m.move.next(m.pod, hash, m.move.pending(m.pod, now), m.images, now))
	change.Images = m.images
	patch = append(patch, change.PodOperations(marked, m.owner.rs.Spec.Template, target.Spec.Template)...)
	patch = append(patch, setEntries("labels", m.pod.Labels, [2]string{labelTemplateHash, hash})...)
	patch = append(patch, reown(m.pod, target)...)
	return PatchPod{Pod: m.pod, Moves: true, Drained: m.turn, ServesOn: m.servesOn(), Operations: guarded(m.pod, patch...),
		Why: fmt.Sprintf("move from %s to %s, %s", m.owner.rs.Name, target.Name, change)}
}

// become gives the pod the images of the ReplicaSet and leaves its identity as it is.
func (m *member) become(rs *ReplicaSet, images []ImageChange, now time.Time) PatchPod {
	mark := m.move.next(m.pod, rs.Labels[labelTemplateHash], m.move.Containers, images, now)
	if rs != m.owner.rs {
		mark.Back = m.before(images)
	}
	marked, patch := m.withMove(mark)
	change := Change{Images: images}
	patch = append(patch, change.PodOperations(marked, Template{}, Template{})...)
	return PatchPod{Pod: m.pod, Operations: guarded(m.pod, patch...), Why: fmt.Sprintf("images of %s, %s", rs.Name, change)}
}

// before are the images the pod had under its labels, as far as they have changed by now or change next.
func (s *podState) before(next []ImageChange) map[string]string {
	back := map[string]string{}
	for _, image := range next {
		back[image.Container] = image.From
	}
	maps.Copy(back, s.move.Back)
	return back
}

// withMove returns the pod with the note of its move, and the operations that put it there.
func (s *podState) withMove(mark Move) (*corev1.Pod, []jsonpatch.Operation) {
	pod := s.pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, AnnotationMove, mark.String())
	return pod, setEntries("annotations", s.pod.Annotations, [2]string{AnnotationMove, mark.String()})
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
