package dryrun

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
)

// Policies that look at pods only when they are created never see what is patched into running ones. So before anything changes, the
// API server is asked once per target to create a pod of it as the native controller would, and to store nothing: the rehearsal. What is
// refused there would be refused natively; and no running pod gets another image than the rehearsed one has.

// Result is what was found out about new pods of a revision. Without Refused, Unknown and Pod admission is taken to change nothing.
type Result struct {
	// UpdateRevision is the UID of the revision; empty if there was no rehearsal.
	UpdateRevision types.UID
	// Pod is what admission makes of one.
	Pod *corev1.Pod
	// Refused is why none is created.
	Refused string
	// Unknown is why nobody can tell. Then the update is made as if admission changed nothing, unless some pod shows that it does.
	Unknown string
	// Claim is one of those that only one node, or one pod, can mount; empty if there is none.
	Claim string
}

// NewPods is a Rehearsal as far as it is one of the target's, and what it means for pods.
type NewPods struct {
	Result
	// Containers are those of the target's template that live, with the images and resources that admission gives them.
	Containers []corev1.Container
	// own are the names of the containers in the template, init containers too.
	own map[string]bool
	// additions are those of Pod.
	additions map[addition]string
}

// Of reads the rehearsal for a target with that template, whose containers are decoded already.
func (r Result) Of(updateRevision types.UID, template apps.Template, containers []corev1.Container) NewPods {
	found := NewPods{Containers: containers}
	if r.UpdateRevision != updateRevision {
		return found
	}
	found.Result = r
	if r.Pod != nil {
		found.read(template.Decoded().Spec)
	}
	return found
}

// read reads what became of the template's spec.
func (r *NewPods) read(spec corev1.PodSpec) {
	admitted := map[string]*corev1.Container{}
	for container := range edit.EachLiving(&r.Pod.Spec) {
		admitted[container.Name] = container
	}
	r.Containers = slices.Clone(r.Containers)
	for i := range r.Containers {
		if container := admitted[r.Containers[i].Name]; container != nil {
			r.Containers[i].Image = cmp.Or(container.Image, r.Containers[i].Image)
			r.Containers[i].Resources = container.Resources
		}
	}
	r.own = map[string]bool{}
	for _, container := range slices.Concat(spec.Containers, spec.InitContainers) {
		r.own[container.Name] = true
	}
	r.additions = r.added(r.Pod)
}

// Against is why no pod can become in place what a new one would be; nil if that is not known of all.
func (r NewPods) Against() *inplace.Reason {
	if r.Refused == "" {
		return nil
	}
	return &inplace.Reason{Code: inplace.CodeNotAdmitted, Message: "no new pod is admitted: " + r.Refused}
}

// AgainstPod is why this one, of another revision, cannot make the change; nil if it can. What it has had so far does not matter, as it gets what the
// rehearsed pod has. But where that is not known, an image that is not its template's tells that the next would be changed, too.
func (r NewPods) AgainstPod(pod *corev1.Pod, change edit.Change, rewritten []edit.ContainerChange) *inplace.Reason {
	switch {
	case r.Pod != nil:
		return cmp.Or(r.injects(pod), r.tolerates(pod, change.Tolerations))
	case r.Unknown != "" && len(rewritten) > 0:
		first := rewritten[0]
		return &inplace.Reason{Code: inplace.CodeRewrittenImage, Message: fmt.Sprintf("container %s of pod %s has image %q although its template says %q, and %s",
			first.Container, pod.Name, first.Image.From, first.Image.To, r.Unknown)}
	}
	return nil
}

// injects tells what a new pod has besides its template and the running one has not, or the other way round.
func (r NewPods) injects(pod *corev1.Pod) *inplace.Reason {
	if r.listsTheSame(pod.Spec.Containers, r.Pod.Spec.Containers) && r.listsTheSame(pod.Spec.InitContainers, r.Pod.Spec.InitContainers) {
		return nil
	}
	has := r.added(pod)
	if maps.Equal(has, r.additions) {
		return nil
	}
	both := maps.Clone(has)
	maps.Copy(both, r.additions)
	all := slices.SortedFunc(maps.Keys(both), addition.compare)
	added := all[slices.IndexFunc(all, func(a addition) bool { return a.in(has) != a.in(r.additions) })]
	return &inplace.Reason{Code: inplace.CodeInjected, Message: fmt.Sprintf("admission gives new pods %s, and pod %s has %s",
		added.in(r.additions), pod.Name, added.in(has))}
}

// tolerates tells, of a pod that gets tolerations, what it would then tolerate and a new one would not, or the other way round: none can be
// taken from it. Their order does not matter.
func (r NewPods) tolerates(pod *corev1.Pod, added []corev1.Toleration) *inplace.Reason {
	if len(added) == 0 {
		return nil
	}
	would := slices.Concat(pod.Spec.Tolerations, added)
	message := ""
	if more := edit.Lacking(would, r.Pod.Spec.Tolerations); len(more) > 0 {
		message = fmt.Sprintf("admission gives new pods a toleration of %q, and pod %s has it not", more[0].Key, pod.Name)
	}
	if more := edit.Lacking(r.Pod.Spec.Tolerations, would); len(more) > 0 {
		message = fmt.Sprintf("pod %s keeps its toleration of %q, and admission gives new ones none such", pod.Name, more[0].Key)
	}
	if message == "" {
		return nil
	}
	return &inplace.Reason{Code: inplace.CodeInjected, Message: message}
}

// addition is something that a pod may have besides its template.
type addition struct{ kind, name, container string }

// in says whether it is among them, and which image it has there.
func (a addition) in(additions map[addition]string) string {
	image, found := additions[a]
	text := a.kind + " " + a.name
	if a.container != "" {
		text += " in container " + a.container
	}
	switch {
	case !found:
		return "no " + text
	case image != "":
		return fmt.Sprintf("%s with image %q", text, image)
	}
	return text
}

func (a addition) compare(b addition) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.container, b.container), cmp.Compare(a.name, b.name))
}

// added is what admission may have added, as far as it is alike in all pods of a template: containers with their images, and in the
// template's own containers the names of variables and the places of volumes. Values, and the names of volumes, may be one pod's alone.
// What the template says is among it, too: it is the same in all pods that are compared.
func (r NewPods) added(pod *corev1.Pod) map[addition]string {
	found := map[addition]string{}
	for _, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if !r.own[container.Name] {
			found[addition{kind: "container", name: container.Name}] = container.Image
			continue
		}
		for _, env := range container.Env {
			found[addition{"variable", env.Name, container.Name}] = ""
		}
		for _, mount := range container.VolumeMounts {
			found[addition{"volume", mount.MountPath, container.Name}] = ""
		}
	}
	return found
}

// listsTheSame reports whether what was added is the same and in the same order, as in nearly all pods: that is quickly seen.
func (r NewPods) listsTheSame(a, b []corev1.Container) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !r.addsTheSame(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

// addsTheSame compares two containers by what added tells of them.
func (r NewPods) addsTheSame(a, b *corev1.Container) bool {
	if a.Name != b.Name || !r.own[a.Name] {
		return a.Name == b.Name && a.Image == b.Image
	}
	return slices.EqualFunc(a.Env, b.Env, func(a, b corev1.EnvVar) bool { return a.Name == b.Name }) &&
		slices.EqualFunc(a.VolumeMounts, b.VolumeMounts, func(a, b corev1.VolumeMount) bool { return a.MountPath == b.MountPath })
}

// Asking is what a plan says while it waits for the answer.
const Asking = "ask what admission makes of a new pod"

// NewPod is GetPodFromTemplate in pkg/controller/controller_utils.go, of an undecoded template.
func NewPod(template map[string]any, controller metav1.Object, kind string) json.RawMessage {
	metadata := map[string]any{
		"namespace": controller.GetNamespace(), "generateName": controller.GetName() + "-",
		"ownerReferences": []metav1.OwnerReference{*apps.ControllerRef(controller, kind)},
	}
	for _, copied := range []string{"labels", "annotations", "finalizers"} {
		metadata[copied] = apps.Object(template, "metadata")[copied]
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return raw
}
