package inplace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Policies that look at pods only when they are created never see what is patched into running ones. So before anything changes, the
// API server is asked once per target to create a pod of it as the native controller would, and to store nothing: the rehearsal. What is
// refused there would be refused natively; and no running pod gets another image than the rehearsed one has.

// Rehearse asks for a rehearsal.
type Rehearse struct {
	// Target is the UID of the revision.
	Target types.UID
	// Pod is one of that revision, raw so that fields newer than our types are kept.
	Pod json.RawMessage
	// Claims name the PersistentVolumeClaims that all its pods share: which of them is ForOneNode has to be known, too.
	Claims []string
}

// Rehearsal is what was found out about new pods of a revision. Without Refused, Unknown and Pod admission is taken to change nothing.
type Rehearsal struct {
	// Target is the UID of the revision; empty if there was no rehearsal.
	Target types.UID
	// Pod is what admission makes of one.
	Pod *corev1.Pod
	// Refused is why none is created.
	Refused string
	// Unknown is why nobody can tell. Then the update is made as if admission changed nothing, unless some pod shows that it does.
	Unknown string
	// Claim is one of those that only one node, or one pod, can mount; empty if there is none.
	Claim string
}

// rehearsed is a Rehearsal as far as it is one of the target's, and what it means for pods.
type rehearsed struct {
	Rehearsal
	// containers are those of the target's template, with the images that admission gives them.
	containers []corev1.Container
	// own are the names of the containers in the template, init containers too.
	own map[string]bool
	// additions are those of Pod.
	additions map[addition]string
}

// of reads the rehearsal for a target with that template, whose containers are decoded already.
func (r Rehearsal) of(target types.UID, template Template, containers []corev1.Container) rehearsed {
	found := rehearsed{containers: containers}
	if r.Target != target {
		return found
	}
	found.Rehearsal = r
	if r.Pod != nil {
		found.read(template.typed().Spec)
	}
	return found
}

// read reads what became of the template's spec.
func (r *rehearsed) read(spec corev1.PodSpec) {
	images := map[string]string{}
	for _, container := range r.Pod.Spec.Containers {
		images[container.Name] = container.Image
	}
	r.containers = slices.Clone(r.containers)
	for i := range r.containers {
		r.containers[i].Image = cmp.Or(images[r.containers[i].Name], r.containers[i].Image)
	}
	r.own = map[string]bool{}
	for _, container := range slices.Concat(spec.Containers, spec.InitContainers) {
		r.own[container.Name] = true
	}
	r.additions = r.added(r.Pod)
}

// against is why no pod can become in place what a new one would be; nil if that is not known of all.
func (r rehearsed) against() *Reason {
	if r.Refused == "" {
		return nil
	}
	return &Reason{Code: CodeNotAdmitted, Message: "no new pod is admitted: " + r.Refused}
}

// againstPod is why this one, of another revision, cannot; nil if it can. What it has had so far does not matter, as it gets what the
// rehearsed pod has. But where that is not known, an image that is not its template's tells that the next would be changed, too.
func (r rehearsed) againstPod(pod *corev1.Pod, rewritten []ContainerChange) *Reason {
	switch {
	case r.Pod != nil:
		return r.injects(pod)
	case r.Unknown != "" && len(rewritten) > 0:
		first := rewritten[0]
		return &Reason{Code: CodeRewrittenImage, Message: fmt.Sprintf("container %s of pod %s has image %q although its template says %q, and %s",
			first.Container, pod.Name, first.Image.From, first.Image.To, r.Unknown)}
	}
	return nil
}

// injects tells what a new pod has besides its template and the running one has not, or the other way round.
func (r rehearsed) injects(pod *corev1.Pod) *Reason {
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
	return &Reason{Code: CodeInjected, Message: fmt.Sprintf("admission gives new pods %s, and pod %s has %s",
		added.in(r.additions), pod.Name, added.in(has))}
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
func (r rehearsed) added(pod *corev1.Pod) map[addition]string {
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

// listsTheSame tells whether what was added is the same and in the same order, as in nearly all pods: that is quickly seen.
func (r rehearsed) listsTheSame(a, b []corev1.Container) bool {
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
func (r rehearsed) addsTheSame(a, b *corev1.Container) bool {
	if a.Name != b.Name || !r.own[a.Name] {
		return a.Name == b.Name && a.Image == b.Image
	}
	return slices.EqualFunc(a.Env, b.Env, func(a, b corev1.EnvVar) bool { return a.Name == b.Name }) &&
		slices.EqualFunc(a.VolumeMounts, b.VolumeMounts, func(a, b corev1.VolumeMount) bool { return a.MountPath == b.MountPath })
}

// unrehearsed: pods are to change, and nobody knows what admission makes of new ones. While paused nothing begins.
func (v *view) unrehearsed() bool {
	return v.target != nil && v.rehearsed.Target == "" && v.unfinished() && (!v.paused() || v.settling())
}

// rehearse asks. Until there is an answer all stays as it is, and whose turn it is keeps it.
func (v *view) rehearse() turns {
	target := v.target.rs
	v.plan.Rehearse = &Rehearse{Target: target.UID, Pod: newPod(target.Spec.Template.tree(), target, "ReplicaSet"),
		Claims: claimsOf(target.Spec.Template.Typed().Spec)}
	turns := turns{}
	v.keepTurns(turns, nil)
	v.gates(turns)
	v.patchSets(nil) // signatures
	v.patchStatus()
	v.phase(PhaseWaiting, asking)
	return turns
}

const asking = "ask what admission makes of a new pod"

// notAsRehearsed is why the pods cannot become in place what new ones would be; nil if they can.
func (v *view) notAsRehearsed() *Reason {
	reason := v.rehearsed.against()
	for _, m := range v.members {
		if reason == nil && !m.borrowed && m.owner != v.target {
			reason = v.rehearsed.againstPod(m.pod, m.rewritten)
		}
	}
	return reason
}

func (v *daemonView) unrehearsed() bool {
	return v.target != nil && v.rehearsed.Target == "" && v.unfinished()
}

// rehearse asks for a pod on the node of one that is to be updated.
func (v *daemonView) rehearse() turns {
	turns := turns{}
	for _, m := range v.members {
		turns[&m.podState] = m.restarts() && Closed(m.pod)
	}
	v.gates(turns)
	if UnderWay(v.target) {
		v.sign()
	}
	v.phase(PhaseWaiting, asking)
	for m := range v.pending() {
		if m.needs.InPlace() {
			template := v.DaemonSet.podTemplate(v.target, m.pod.Spec.NodeName)
			v.plan.Rehearse = &Rehearse{Target: v.target.UID, Pod: newPod(template, v.DaemonSet, "DaemonSet")}
			break
		}
	}
	return turns
}

func (v *daemonView) notAsRehearsed() *Reason {
	reason := v.rehearsed.against()
	for m := range v.pending() {
		if reason == nil && m.needs.InPlace() {
			reason = v.rehearsed.againstPod(m.pod, m.rewritten)
		}
	}
	return reason
}

// podTemplate is CreatePodTemplate and ReplaceDaemonSetPodNodeNameNodeAffinity in pkg/controller/daemon/util/daemonset_util.go.
func (d *DaemonSet) podTemplate(target *ControllerRevision, node string) map[string]any {
	tree, typed := d.Spec.Template.tree(), d.Spec.Template.Typed()
	made(tree, "metadata", "labels")[labelRevisionHash] = target.Labels[labelRevisionHash]
	spec := made(tree, "spec")
	tolerations, _ := spec["tolerations"].([]any)
	for _, toleration := range daemonTolerations(typed.Spec.HostNetwork) {
		tolerations = append(tolerations, toleration)
	}
	spec["tolerations"] = tolerations
	made(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")["nodeSelectorTerms"] = []corev1.NodeSelectorTerm{
		{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}
	return tree
}

// newPod is GetPodFromTemplate in pkg/controller/controller_utils.go, of an undecoded template.
func newPod(template map[string]any, controller metav1.Object, kind string) json.RawMessage {
	metadata := map[string]any{
		"namespace": controller.GetNamespace(), "generateName": controller.GetName() + "-",
		"ownerReferences": []metav1.OwnerReference{*controllerRef(controller, kind)},
	}
	for _, copied := range []string{"labels", "annotations", "finalizers"} {
		metadata[copied] = object(template, "metadata")[copied]
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return raw
}
