package prepull

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// A pre-pull pod does nothing. The images to pull are its volumes. So the kubelet pulls them before the pod starts, protects them
// from garbage collection as long as the pod runs, and never runs any of them.

// WaitImage is what pre-pull pods run: Stayput's own image, with the command that does nothing.
type WaitImage struct {
	Image         string
	Command, Args []string
	// User and Group are those that the manager's pod asks for. If it asks for none, admission may choose them, as OpenShift's does, and
	// else the image has one. A user that admission gave to the manager's container may not be one of another namespace's.
	User, Group *int64
}

// WaitImageOf returns the waiter of a process that runs in that pod, in the container of that name or else the first one.
func WaitImageOf(pod *corev1.Pod, container string) WaitImage {
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	own := pod.Spec.Containers[max(0, at)]
	waiter := WaitImage{Image: own.Image, Command: own.Command[:min(1, len(own.Command))], Args: []string{"wait"}}
	if security := pod.Spec.SecurityContext; security != nil {
		waiter.User, waiter.Group = security.RunAsUser, security.RunAsGroup
	}
	return waiter
}

// PodOwner is the workload of a pre-pull pod, and its update revision.
type PodOwner struct {
	metav1.Object
	updateRevision types.UID
	// Controller is the pre-pull pod's controller. When it is deleted, the pre-pull pod is deleted, too.
	Controller metav1.OwnerReference
}

// OwnedBy returns an owner whose pre-pull pods are for that revision and are controlled by that object, which must be one whose native
// controller does not take them for pods of its own.
func OwnedBy(workload metav1.Object, updateRevision types.UID, kind string, controller metav1.Object) PodOwner {
	reference := metav1.NewControllerRef(controller, apps.GroupVersion.WithKind(kind))
	reference.BlockOwnerDeletion = nil // the garbage collector need not wait for a pre-pull pod
	return PodOwner{workload, updateRevision, *reference}
}

// Name returns the name of the pre-pull pod on the node. It is the same for every attempt, so an attempt from an outdated cache
// finds that the pod exists. The name includes the update revision.
func (w PodOwner) Name(node string) string {
	if w.Object == nil {
		return ""
	}
	hasher := fnv.New64a()
	fmt.Fprintf(hasher, "%s/%s", w.updateRevision, node)
	suffix := "-pull-" + strconv.FormatUint(hasher.Sum64(), 36)
	name := w.GetName()
	return strings.TrimRight(name[:min(len(name), 63-len(suffix))], "-.") + suffix
}

// VolumeImage is an image as the kubelet is asked to pull it.
type VolumeImage struct {
	Reference string
	Policy    corev1.PullPolicy
}

// WaitContainer is the name of the only container of a pre-pull pod.
const WaitContainer = "wait"

// neverReady is a readiness gate of pre-pull pods that is never opened. So no Service sends requests to a pre-pull pod, whatever
// labels admission adds to it.
const neverReady = inplace.LabelPrePull

// NewPod returns a pre-pull pod that pulls as the given pod would: with its secrets and service account, by its runtime, and with
// its tolerations. The pre-pull pod is bound to the node without a scheduler, because it is useless on any other node. It has no
// label by which a controller or Service would take it for a pod of the workload.
func NewPod(workload PodOwner, pod *corev1.Pod, images []VolumeImage, waiter WaitImage) *corev1.Pod {
	prePullPod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: workload.Name(pod.Spec.NodeName), Namespace: workload.GetNamespace(),
			// Service meshes must not inject a sidecar: the pod has no traffic, and the sidecar's image would be pulled, too.
			Labels: map[string]string{inplace.LabelPrePull: string(workload.GetUID()), "sidecar.istio.io/inject": "false"},
			Annotations: map[string]string{"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled",
				"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
			OwnerReferences: []metav1.OwnerReference{workload.Controller},
		},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, Tolerations: pod.Spec.Tolerations, RuntimeClassName: pod.Spec.RuntimeClassName,
			ServiceAccountName: pod.Spec.ServiceAccountName, ImagePullSecrets: pod.Spec.ImagePullSecrets,
			AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false), RestartPolicy: corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64(1)),
			// The security contexts satisfy the Pod Security Standard "restricted".
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: waiter.User, RunAsGroup: waiter.Group,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: neverReady}},
			Containers: []corev1.Container{{Name: WaitContainer, Image: waiter.Image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: waiter.Command, Args: waiter.Args, Resources: smallResources(),
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		},
	}
	mount(&prePullPod.Spec, images)
	return prePullPod
}

// mount adds the images as volumes. The kubelet does not pull the image of a volume that is not mounted.
func mount(spec *corev1.PodSpec, images []VolumeImage) {
	for i, image := range images {
		name := fmt.Sprintf("image-%d", i)
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: image.Reference, PullPolicy: image.Policy}}})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: name, MountPath: "/images/" + strconv.Itoa(i), ReadOnly: true})
	}
}

func smallResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
	}
}

// holds reports whether the pre-pull pod has these images.
func holds(prePullPod *corev1.Pod, images []string) bool {
	return prePullPod != nil && !slices.ContainsFunc(images,
		func(image string) bool { return !slices.Contains(steps.References(prePullPod), image) })
}

// podState is what the status of a pre-pull pod says of its images.
type podState int

const (
	podWorks podState = iota
	podDone
	podFailed
	// podRejected means that the node did not accept the pre-pull pod, or evicted it.
	podRejected
)

// told returns the state of the pre-pull pod, and a message. The kubelet pulls image volumes before the image of the container
// that mounts them (SyncPod, getImageVolumes and toKubeContainerImageVolumes in pkg/kubelet/kuberuntime/kuberuntime_manager.go). So
// an error of that container after the volumes were pulled does not matter. That includes an error with Stayput's own image.
func told(prePullPod *corev1.Pod) (podState, string) {
	state := readiness.ContainerStatus(prePullPod, WaitContainer).State
	switch {
	case state.Running != nil, state.Terminated != nil && !state.Terminated.StartedAt.IsZero():
		return podDone, ""
	case readiness.Terminal(prePullPod):
		return podRejected, strings.TrimSuffix(prePullPod.Status.Reason+": "+prePullPod.Status.Message, ": ")
	case state.Waiting == nil || state.Waiting.Reason == "" || state.Waiting.Reason == "ContainerCreating" ||
		state.Waiting.Reason == "PodInitializing":
		return podWorks, ""
	}
	// The message may be about the pod's own image, which admission may have renamed, and not about one that is to be pulled.
	in := func(image string) bool { return mentions(state.Waiting.Message, image) }
	isOwn := slices.ContainsFunc(prePullPod.Spec.Containers, func(c corev1.Container) bool { return in(c.Image) })
	if !readiness.CannotPull[state.Waiting.Reason] || isOwn && !slices.ContainsFunc(steps.References(prePullPod), in) {
		return podDone, ""
	}
	return podFailed, cause(state.Waiting)
}

func mentions(message, image string) bool {
	return strings.Contains(message, image) || strings.Contains(message, edit.NormalImage(image))
}

// cause returns the registry's message without the prefix that the kubelet adds while it backs off. So the message stays the same.
func cause(waiting *corev1.ContainerStateWaiting) string {
	message := waiting.Message
	if rest, backOff := strings.CutPrefix(message, "Back-off pulling image "); backOff {
		_, message, _ = strings.Cut(rest, `": `)
	}
	if reason, rest, found := strings.Cut(message, ": "); found && readiness.CannotPull[reason] {
		message = rest
	}
	if message == "" {
		return waiting.Reason
	}
	return message
}
