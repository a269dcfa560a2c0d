package dryrun

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
)

// Policies that look at pods only when they are created never see what is patched into running pods. So before anything changes, Stayput
// asks the API server once for each update revision to create a pod of it as the native controller would, and to store nothing: the dry
// run. What is refused there would also be refused natively. And no running pod gets an image other than the pod of the dry run has.

// Result is what is known about new pods of a revision. If Refused, Unknown and Pod are all unset, admission is assumed to change nothing.
type Result struct {
	// UpdateRevision is the UID of the revision; empty if there was no dry run.
	UpdateRevision types.UID
	// Pod is a new pod as admission has changed it.
	Pod *corev1.Pod
	// Refused is why no pod is created.
	Refused string
	// Unknown is why the answer is not known. Then the update is made as if admission changed nothing, unless some pod shows that it does.
	Unknown string
	// Impossible is why no pod can be updated in place, as a write has shown; nil if none has.
	Impossible *inplace.Reason
	// Claim is a claim that only one node, or one pod, can mount; empty if there is none.
	Claim string
}

// NewPods is a Result, if it is about the update revision, and what it means for pods.
type NewPods struct {
	Result
	// Containers are the ordinary containers and sidecars of the update revision's template, with the images and resources that admission
	// gives them.
	Containers []corev1.Container
	// Injected are the names and images of the ordinary containers and sidecars that admission adds.
	Injected []corev1.Container
	// own are the names of the containers in the template, init containers too.
	own map[string]bool
	// additions are the additions of Pod.
	additions map[addition]string
}

// Of returns what the result means for an update revision with that template, whose containers are decoded already.
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

// read reads what admission made of the template's spec.
func (r *NewPods) read(spec corev1.PodSpec) {
	r.own = map[string]bool{}
	for _, container := range slices.Concat(spec.Containers, spec.InitContainers) {
		r.own[container.Name] = true
	}
	admitted := map[string]*corev1.Container{}
	for container := range edit.EachLiving(&r.Pod.Spec) {
		if admitted[container.Name] = container; !r.own[container.Name] {
			r.Injected = append(r.Injected, corev1.Container{Name: container.Name, Image: container.Image})
		}
	}
	r.Containers = slices.Clone(r.Containers)
	for i := range r.Containers {
		if container := admitted[r.Containers[i].Name]; container != nil {
			r.Containers[i].Image = cmp.Or(container.Image, r.Containers[i].Image)
			r.Containers[i].Resources = container.Resources
		}
	}
	r.additions = r.added(r.Pod)
}

// Against returns why no running pod can be changed in place to what a new pod would be; nil if no such reason holds for all pods.
func (r NewPods) Against() *inplace.Reason {
	if r.Impossible != nil || r.Refused == "" {
		return r.Impossible
	}
	return &inplace.Reason{Code: inplace.CodeNotAdmitted, Message: "no new pod is admitted: " + r.Refused}
}

// AgainstPod returns why this pod, of another revision, cannot make the change; nil if it can. The images that it has had so far do not
// matter, since it gets those of the pod of the dry run. But where the answer is not known, an image other than the template's shows that
// admission would change the next image, too.
func (r NewPods) AgainstPod(pod *corev1.Pod, change edit.Change, rewritten []edit.ContainerChange) *inplace.Reason {
	switch {
	case r.Pod != nil:
		return cmp.Or(r.injects(pod, change), r.tolerates(pod, change.Tolerations), r.relabels(change), r.entitles(pod, change))
	case r.Unknown != "" && len(rewritten) > 0:
		first := rewritten[0]
		return &inplace.Reason{Code: inplace.CodeRewrittenImage, Message: fmt.Sprintf(
			"container %s of pod %s has image %q although its template says %q, and %s",
			first.Container, pod.Name, first.Image.From, first.Image.To, r.Unknown)}
	}
	return nil
}

// injects returns a reason if a new pod has something besides its template that the running pod does not have and does not get with the
// change, or the other way round. An injected container that was restarted has another name of its image.
func (r NewPods) injects(pod *corev1.Pod, change edit.Change) *inplace.Reason {
	if r.listsTheSame(pod.Spec.Containers, r.Pod.Spec.Containers) && r.listsTheSame(pod.Spec.InitContainers, r.Pod.Spec.InitContainers) {
		return nil
	}
	has := r.added(pod)
	for _, injected := range r.Injected {
		had := edit.Named(&pod.Spec, injected.Name)
		if had == nil || had.Image == injected.Image {
			continue
		}
		if !edit.IsNameOf(had.Image, injected.Image) {
			if reason := r.whyNotRenewed(pod, had, change); reason != nil {
				return reason
			}
		}
		has[addition{kind: "container", name: injected.Name}] = injected.Image
	}
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

// whyNotRenewed returns why an injected container of the pod cannot get the image that it has in a new pod; nil if it can. It restarts for
// that, and a proxy that restarts cuts off the pod's other containers. So all these have to restart with it.
func (r NewPods) whyNotRenewed(pod *corev1.Pod, had *corev1.Container, change edit.Change) *inplace.Reason {
	becomes := edit.Named(&r.Pod.Spec, had.Name)
	if reasons := edit.WhyNotRestarted(&r.Pod.Spec, had.Name); len(reasons) > 0 {
		return &reasons[0]
	}
	why := ""
	if !equality.Semantic.DeepEqual(ButForImage(*had), ButForImage(*becomes)) {
		why = "more of it differs than the image"
	}
	for _, container := range r.Containers {
		if why == "" && !change.RestartsContainer(container.Name) {
			why = fmt.Sprintf("container %s does not restart with it", container.Name)
		}
	}
	if why == "" {
		return nil
	}
	return &inplace.Reason{Code: inplace.CodeInjected, Message: fmt.Sprintf(
		"admission gives new pods container %s with image %q, pod %s has it with image %q, and %s",
		had.Name, becomes.Image, pod.Name, had.Image, why)}
}

// ButForImage returns what an injected container has to have in common with that of a new pod, so that it can get its image: all but the
// image, CPU and memory, which may have been changed in the running pod, and the names of volumes, which may differ from pod to pod.
func ButForImage(c corev1.Container) corev1.Container {
	c.Image, c.Resources = "", corev1.ResourceRequirements{}
	c.VolumeMounts = slices.Clone(c.VolumeMounts)
	for i := range c.VolumeMounts {
		c.VolumeMounts[i].Name = ""
	}
	return c
}

// tolerates returns a reason if a pod that gets tolerations would then tolerate something that a new pod would not, or the other way round:
// no toleration can be removed from the pod. Their order does not matter.
func (r NewPods) tolerates(pod *corev1.Pod, added []corev1.Toleration) *inplace.Reason {
	if len(added) == 0 {
		return nil
	}
	would := slices.Concat(pod.Spec.Tolerations, added)
	message := ""
	if more := edit.Missing(would, r.Pod.Spec.Tolerations); len(more) > 0 {
		message = fmt.Sprintf("admission gives new pods a toleration of %q, and pod %s has it not", more[0].Key, pod.Name)
	}
	if more := edit.Missing(r.Pod.Spec.Tolerations, would); len(more) > 0 {
		message = fmt.Sprintf("pod %s keeps its toleration of %q, and admission gives new ones none such", pod.Name, more[0].Key)
	}
	if message == "" {
		return nil
	}
	return &inplace.Reason{Code: inplace.CodeInjected, Message: message}
}

// relabels returns a reason if admission gives new pods another value of a label that variables read than their template: containers that
// restart would read that of the template.
func (r NewPods) relabels(change edit.Change) *inplace.Reason {
	for _, label := range change.Labels {
		value, has := r.Pod.Labels[label.Key]
		if slices.Contains(change.Read.Labels, label.Key) && (has == label.Removing || value != label.Value) {
			return &inplace.Reason{Code: inplace.CodeInjected, Message: fmt.Sprintf(
				"admission gives new pods another label %s than their template, and variables read it", label.Key)}
		}
	}
	return nil
}

// entitles returns a reason if a new pod has a pull secret that the running pod, which gets an image, has not and cannot get: pull secrets
// were added to its service account. So its kubelet could refuse the image, and a pre-pull pod, which is new, would not show that.
func (r NewPods) entitles(pod *corev1.Pod, change edit.Change) *inplace.Reason {
	secrets := r.Pod.Spec.ImagePullSecrets
	missing := slices.IndexFunc(secrets, func(s corev1.LocalObjectReference) bool { return !slices.Contains(pod.Spec.ImagePullSecrets, s) })
	if missing < 0 || !slices.ContainsFunc(change.Containers, edit.ContainerChange.NewImage) {
		return nil
	}
	return &inplace.Reason{Code: inplace.CodeInjected, Message: fmt.Sprintf(
		"admission gives new pods pull secret %s, and pod %s does not have it", secrets[missing].Name, pod.Name)}
}

// addition is something that a pod may have besides its template.
type addition struct{ kind, name, container string }

// in describes the addition as it is among the additions: with its image there, or as missing.
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

// added returns what admission may have added, as far as it is the same in all pods of a template: containers with their images, and in the
// template's own containers the names of variables and the mount paths of volumes. Values of variables and names of volumes may differ from
// pod to pod. What the template says is included, too: it is the same in all pods that are compared.
func (r NewPods) added(pod *corev1.Pod) map[addition]string {
	found := map[addition]string{}
	for _, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if !r.own[container.Name] {
			found[addition{kind: "container", name: container.Name}] = container.Image
			continue
		}
		found[addition{kind: "container", name: container.Name}] = "" // admission may also drop it
		for _, env := range container.Env {
			found[addition{"variable", env.Name, container.Name}] = ""
		}
		for _, mount := range container.VolumeMounts {
			found[addition{"volume", mount.MountPath, container.Name}] = ""
		}
	}
	return found
}

// listsTheSame reports whether what was added is the same and in the same order, as in nearly all pods. That check is fast.
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

// addsTheSame compares two containers by what added returns of them.
func (r NewPods) addsTheSame(a, b *corev1.Container) bool {
	if a.Name != b.Name || !r.own[a.Name] {
		return a.Name == b.Name && a.Image == b.Image
	}
	return slices.EqualFunc(a.Env, b.Env, func(a, b corev1.EnvVar) bool { return a.Name == b.Name }) &&
		slices.EqualFunc(a.VolumeMounts, b.VolumeMounts, func(a, b corev1.VolumeMount) bool { return a.MountPath == b.MountPath })
}

// Asking is the message of a plan that waits for the answer.
const Asking = "ask what admission makes of a new pod"

// NewPod returns what GetPodFromTemplate in pkg/controller/controller_utils.go returns, for a template that is not decoded.
func NewPod(template map[string]any, controller apps.APIObject) json.RawMessage {
	metadata := map[string]any{
		"namespace": controller.GetNamespace(), "generateName": controller.GetName() + "-",
		"ownerReferences": []metav1.OwnerReference{*apps.ControllerRef(controller)},
	}
	for _, copied := range []string{"labels", "annotations", "finalizers"} {
		metadata[copied] = apps.Object(template, "metadata")[copied]
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
	if err != nil {
		panic(err) // the template was decoded from JSON
	}
	return raw
}
