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

// A puller is a pod that does nothing. The images it is there for are its volumes, so that the kubelet pulls them before it
// starts, keeps them from garbage collection as long as it runs, and never runs any of them.

// Waiter is what pullers run: our own image, with the command that does nothing.
type Waiter struct {
	Image         string
	Command, Args []string
}

// WaiterOf is the waiter of the process that runs in that pod, in the container of that name or else the first.
func WaiterOf(pod *corev1.Pod, container string) Waiter {
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	own := pod.Spec.Containers[max(0, at)]
	return Waiter{Image: own.Image, Command: own.Command[:min(1, len(own.Command))], Args: []string{"wait"}}
}

// PodOwner is the workload a puller belongs to, and its target.
type PodOwner struct {
	metav1.Object
	updateRevision types.UID
	// Controller goes, and takes the puller along.
	Controller metav1.OwnerReference
}

// OwnedByDeployment has the Deployment itself for controller, which takes only ReplicaSets for its own.
func OwnedByDeployment(d *apps.Deployment, updateRevision *apps.ReplicaSet) PodOwner {
	return PodOwner{d, updateRevision.UID, controlledBy("Deployment", d)}
}

// OwnedByDaemonSet has the revision for controller: the DaemonSet controller takes every pod it controls for one of its own
// (claimPods by ControllerRef in pkg/controller/controller_ref_manager.go), and deletes it.
func OwnedByDaemonSet(ds *apps.DaemonSet, updateRevision *apps.ControllerRevision) PodOwner {
	return PodOwner{ds, updateRevision.UID, controlledBy("ControllerRevision", updateRevision)}
}

func controlledBy(kind string, owner metav1.Object) metav1.OwnerReference {
	reference := apps.ControllerRef(owner, kind)
	reference.BlockOwnerDeletion = nil // nobody has to wait for a puller
	return *reference
}

// Name is the same for every attempt, so that one made on a cache that lags finds the puller existing. It says which target a
// puller is for.
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

// VolumeImage is an image as a kubelet is asked for it.
type VolumeImage struct {
	Reference string
	Policy    corev1.PullPolicy
}

// WaitContainer is the one container of a puller.
const WaitContainer = "wait"

// neverReady is a readiness gate of pullers that nothing opens: whatever labels admission adds to one, no Service sends it requests.
const neverReady = inplace.LabelPrePull

// NewPod pulls as the pod would: with its secrets and service account, by its runtime, despite the taints it tolerates. It
// is bound to the node without a scheduler, since no other node will do, and has no label by which anybody would take it for one
// of the workload's pods.
func NewPod(workload PodOwner, pod *corev1.Pod, images []VolumeImage, waiter Waiter) *corev1.Pod {
	no, grace := false, int64(1)
	prePullPod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: workload.Name(pod.Spec.NodeName), Namespace: workload.GetNamespace(),
			// Meshes: nothing is sent or served, and a sidecar would be pulled too.
			Labels: map[string]string{inplace.LabelPrePull: string(workload.GetUID()), "sidecar.istio.io/inject": "false"},
			Annotations: map[string]string{"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled",
				"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
			OwnerReferences: []metav1.OwnerReference{workload.Controller},
		},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, Tolerations: pod.Spec.Tolerations, RuntimeClassName: pod.Spec.RuntimeClassName,
			ServiceAccountName: pod.Spec.ServiceAccountName, ImagePullSecrets: pod.Spec.ImagePullSecrets,
			AutomountServiceAccountToken: &no, EnableServiceLinks: &no, RestartPolicy: corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &grace, SecurityContext: restrictedPod(), ReadinessGates: []corev1.PodReadinessGate{{ConditionType: neverReady}},
			Containers: []corev1.Container{{Name: WaitContainer, Image: waiter.Image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: waiter.Command, Args: waiter.Args, Resources: smallResources(), SecurityContext: restrictedContainer()}},
		},
	}
	mount(&prePullPod.Spec, images)
	return prePullPod
}

// mount adds the images as volumes. One that is not mounted would not be pulled.
func mount(spec *corev1.PodSpec, images []VolumeImage) {
	for i, image := range images {
		name := fmt.Sprintf("image-%d", i)
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: image.Reference, PullPolicy: image.Policy}}})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: name, MountPath: "/images/" + strconv.Itoa(i), ReadOnly: true})
	}
}

// restrictedPod and restrictedContainer meet Pod Security Standard "restricted".
func restrictedPod() *corev1.PodSecurityContext {
	yes, none := true, int64(65532)
	return &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &none, RunAsGroup: &none,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
}

func restrictedContainer() *corev1.SecurityContext {
	yes, no := true, false
	return &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
}

func smallResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
	}
}

// holds reports whether the puller has these images.
func holds(prePullPod *corev1.Pod, images []string) bool {
	return prePullPod != nil && !slices.ContainsFunc(images, func(image string) bool { return !slices.Contains(steps.References(prePullPod), image) })
}

// podState is what a puller tells of its images.
type podState int

const (
	podWorks podState = iota
	podDone
	podFailed
	// podRejected: its node did not take the puller, or threw it out.
	podRejected
)

// tells reads the puller's status. The kubelet pulls image volumes before the image of the container that mounts them
// (SyncPod, getImageVolumes and toKubeContainerImageVolumes in pkg/kubelet/kuberuntime/kuberuntime_manager.go), so whatever
// goes wrong with that container after they were pulled is no matter, our own image included.
func (w Waiter) tells(prePullPod *corev1.Pod) (podState, string) {
	state := readiness.ContainerStatus(prePullPod, WaitContainer).State
	switch {
	case state.Running != nil, state.Terminated != nil && !state.Terminated.StartedAt.IsZero():
		return podDone, ""
	case readiness.Terminal(prePullPod):
		return podRejected, strings.TrimSuffix(prePullPod.Status.Reason+": "+prePullPod.Status.Message, ": ")
	case state.Waiting == nil || state.Waiting.Reason == "" || state.Waiting.Reason == "ContainerCreating" || state.Waiting.Reason == "PodInitializing":
		return podWorks, ""
	case readiness.CannotPull[state.Waiting.Reason] && !w.isMeant(state.Waiting.Message, steps.References(prePullPod)):
		return podFailed, cause(state.Waiting)
	}
	return podDone, ""
}

// isMeant reports whether a message is about our own image and no other.
func (w Waiter) isMeant(message string, others []string) bool {
	return mentions(message, w.Image) && !slices.ContainsFunc(others, func(image string) bool { return mentions(message, image) })
}

// about is the image that the message is about, the first if none is.
func about(images []string, message string) string {
	return images[max(0, slices.IndexFunc(images, func(image string) bool { return mentions(message, image) }))]
}

func mentions(message, image string) bool {
	return strings.Contains(message, image) || strings.Contains(message, edit.NormalImage(image))
}

// cause is the registry's word without what the kubelet puts before it while it backs off, so that it stays the same.
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
