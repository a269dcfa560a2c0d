package observe

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/edit"
)

// An outline stands for an object that is too large to be kept, or of which Stayput probably needs no more than what it
// belongs to. It has the object's identity, its controller, Stayput's marks, and the numbers of replicas.

// annotationOutline is on each outline in the cache. Its value is the size of the object (sizeOf). No user can set it: each process has
// another one.
var annotationOutline = "stayput.dev/outline-" + string(uuid.NewUUID())

const (
	// large is the size above which an object is kept as an outline. Templates and trimmed pods take a few KiB.
	large = 64 << 10
	// longestReference bounds the text of an owner reference. The API server only requires that the text is not empty.
	longestReference = 1 << 10
)

// outlineLabels are the labels that an outline has. The API server keeps their values short.
var outlineLabels = append([]string{
	inplace.LabelUpdate, inplace.LabelPrePull, appsv1.DefaultDeploymentUniqueLabelKey, appsv1.DefaultDaemonSetUniqueLabelKey,
}, inplace.Marks...)

// outlineSize returns the size of the object that an outline in the cache stands for. It returns false if the object is
// no outline.
func outlineSize(object client.Object) (size int, ok bool) {
	value, ok := object.GetAnnotations()[annotationOutline]
	if !ok {
		return 0, false
	}
	size, err := strconv.Atoi(value)
	return size, err == nil
}

// outlineOf returns the outline of an object of that size. It returns the object itself if its type has no outlines.
func outlineOf(object client.Object, size int) client.Object {
	if pod, is := object.(*corev1.Pod); is {
		return outlineOfPod(pod, size)
	}
	if of := typeFor(object); of != nil {
		return of.outlineOf(object, size)
	}
	return object
}

// outlineOfPod returns an outline that also says where the pod is, and whether it has ended. Pods of a template share what is the same. A
// crowded pod counts as larger than may be read.
func outlineOfPod(pod *corev1.Pod, size int) *corev1.Pod {
	if isCrowded(pod) {
		size = mostRead + 1
	}
	form := &corev1.Pod{ObjectMeta: outlineMeta(pod, size)}
	form.Namespace, form.Labels, form.Annotations = Shared(form.Namespace), sharedLabels(form.Labels), sharedLabels(form.Annotations)
	form.OwnerReferences = sharedList(&ofOwners, form.OwnerReferences)
	form.Spec.NodeName, form.Status.Phase = Shared(pod.Spec.NodeName), corev1.PodPhase(Shared(string(pod.Status.Phase)))
	return form
}

// isCrowded reports whether the pod is apps.Crowded. Such a pod is never trimmed: it is always an outline.
func isCrowded(pod *corev1.Pod) bool { return apps.Crowded(pod) != "" }

func outlineMeta(object metav1.Object, size int) metav1.ObjectMeta {
	form := metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), Generation: object.GetGeneration(),
		CreationTimestamp: object.GetCreationTimestamp(), DeletionTimestamp: object.GetDeletionTimestamp(),
		Annotations: map[string]string{annotationOutline: strconv.Itoa(size)},
	}
	labels := object.GetLabels()
	if labels != nil { // to a patch, an empty map and a missing map are not the same
		form.Labels = map[string]string{}
	}
	for _, key := range outlineLabels {
		if value, has := labels[key]; has {
			form.Labels[key] = value
		}
	}
	owner := metav1.GetControllerOf(object)
	if owner != nil && len(owner.APIVersion)+len(owner.Kind)+len(owner.Name)+len(owner.UID) <= longestReference {
		form.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return form
}

// Compared returns the pod that admission returned, trimmed as the cache trims running pods, with which Stayput
// compares it. If the pod is too large to be kept, Compared returns nil and the reason, as a clause.
func Compared(pod *corev1.Pod) (*corev1.Pod, string) {
	if with := apps.Crowded(pod); with != "" {
		return nil, "with what admission adds it has " + with
	}
	trim(pod)
	if size := sizeOf(pod); size > large {
		return nil, fmt.Sprintf("what would be compared of it with running pods has %d KiB, more than %d", size>>10, large>>10)
	}
	return pod, ""
}

// trim drops the parts of an object that Stayput never reads. It does not change what a patch compares, or addresses by
// its index. It never turns an existing map or list into a missing one.
func trim(object client.Object) {
	object.SetManagedFields(nil)
	if pod, ok := object.(*corev1.Pod); ok {
		pod.Labels = sharedLabels(entries(pod.Labels, func(string) bool { return true }))
		pod.Annotations = entries(pod.Annotations, readsAnnotation)
		pod.OwnerReferences = sharedList(&ofOwners, each(pod.OwnerReferences, itself))
		trimSpec(&pod.Spec)
		trimStatus(pod)
	}
}

// A map or a list keeps its memory when entries are deleted. A decoded list has up to twice the memory it needs. So
// trim copies what is left into new maps and lists.

// itself is for lists of which all is kept.
func itself[T any](item T) T { return item }

// entries returns the wanted entries of the map, in a new one.
func entries(of map[string]string, wanted func(key string) bool) map[string]string {
	if of == nil {
		return nil
	}
	kept := map[string]string{}
	for key, value := range of {
		if wanted(key) {
			kept[Shared(key)] = Shared(value)
		}
	}
	return kept
}

// each returns a new list with what keep returns for each item.
func each[T any](list []T, keep func(T) T) []T {
	if list == nil {
		return nil
	}
	kept := make([]T, len(list))
	for i := range list {
		kept[i] = keep(list[i])
	}
	return kept
}

// readsAnnotation reports whether Stayput reads that annotation of a pod. Annotations that change in place are not
// among them: Stayput writes them without reading them first.
func readsAnnotation(key string) bool {
	return strings.HasPrefix(key, "stayput.dev/") || strings.HasPrefix(key, inplace.PreRestartHookPrefix) || key == corev1.PodDeletionCost
}

// trimSpec drops what only kubelets and schedulers need. It keeps volumes that are images, because they say what a
// pre-pull pod pulls, and those that are claims, because they say whether a pod has what its StatefulSet claims.
func trimSpec(spec *corev1.PodSpec) {
	spec.Volumes = readVolumes(spec.Volumes)
	spec.EphemeralContainers = nil
	spec.Affinity, spec.TopologySpreadConstraints, spec.NodeSelector, spec.HostAliases, spec.DNSConfig = nil, nil, nil, nil, nil
	spec.Containers = sharedList(&ofContainers, each(spec.Containers, trimContainer))
	spec.InitContainers = sharedList(&ofContainers, each(spec.InitContainers, trimContainer))
	spec.Tolerations = sharedList(&ofTolerations, each(spec.Tolerations, itself))
}

// readVolumes returns the volumes that are images or claims. Most pods have none.
func readVolumes(volumes []corev1.Volume) []corev1.Volume {
	if volumes == nil {
		return nil
	}
	kept := []corev1.Volume{}
	for _, volume := range volumes {
		if volume.Image != nil || volume.PersistentVolumeClaim != nil {
			kept = append(kept, volume)
		}
	}
	return kept
}

// trimStatus drops what the status says of containers, except which ones run, since when, and in what state.
func trimStatus(pod *corev1.Pod) {
	status := &pod.Status
	status.EphemeralContainerStatuses = nil
	status.HostIPs, status.ResourceClaimStatuses, status.ExtendedResourceClaimStatus = nil, nil, nil
	status.ContainerStatuses, status.InitContainerStatuses = each(status.ContainerStatuses, trimContainerStatus), statusesOfSidecars(pod)
	status.Conditions = each(status.Conditions, func(c corev1.PodCondition) corev1.PodCondition {
		c.Type, c.Reason, c.Message = corev1.PodConditionType(Shared(string(c.Type))), Shared(c.Reason), Shared(c.Message)
		return c
	})
}

// statusesOfSidecars returns the statuses of init containers that are sidecars. Stayput never reads the statuses of the
// other init containers, which have ended.
func statusesOfSidecars(pod *corev1.Pod) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for _, status := range pod.Status.InitContainerStatuses {
		if edit.SidecarNamed(&pod.Spec, status.Name) {
			kept = append(kept, trimContainerStatus(status))
		}
	}
	return slices.Clip(kept)
}

func trimContainerStatus(s corev1.ContainerStatus) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: Shared(s.Name), State: s.State, LastTerminationState: trimEnd(s.LastTerminationState),
		Ready: s.Ready, RestartCount: s.RestartCount,
		Image: Shared(s.Image), ImageID: Shared(s.ImageID), ContainerID: s.ContainerID, Resources: trimReported(s.Resources)}
}

// trimEnd keeps the ID of the container that ended last, and when it ended.
func trimEnd(s corev1.ContainerState) corev1.ContainerState {
	if s.Terminated == nil {
		return corev1.ContainerState{}
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		FinishedAt: s.Terminated.FinishedAt, ContainerID: s.Terminated.ContainerID}}
}

// trimPolicies keeps the policies that require a restart.
func trimPolicies(policies []corev1.ContainerResizePolicy) []corev1.ContainerResizePolicy {
	var restarts []corev1.ContainerResizePolicy
	for _, policy := range policies {
		if policy.RestartPolicy == corev1.RestartContainer {
			restarts = append(restarts, policy)
		}
	}
	return restarts
}

// trimResources keeps CPU and memory. All pods of a template share the result. An existing list stays, even if it
// becomes empty.
func trimResources(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	text := fmt.Sprint(
		edit.AmountsOf(corev1.ResourceRequirements{Requests: r.Requests}), edit.AmountsOf(corev1.ResourceRequirements{Limits: r.Limits}),
		r.Requests == nil, r.Limits == nil)
	return ofResources.Of(text, len(text), func() corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: edit.OnlyResizable(r.Requests), Limits: edit.OnlyResizable(r.Limits)}
	})
}

// ofResources has the trimmed resources of containers, by their text.
var ofResources apps.Findings[string, corev1.ResourceRequirements]

func trimReported(r *corev1.ResourceRequirements) *corev1.ResourceRequirements {
	if r == nil {
		return nil
	}
	trimmed := trimResources(*r)
	return &trimmed
}

// someProbe replaces every readiness probe, because Stayput only reads whether there is one. All pods can share it:
// Stayput never writes to an object of the cache.
var someProbe = &corev1.Probe{}

// trimContainer keeps the names of variables and the mount paths of volumes. By them a dry run shows what admission
// adds. In place of the arguments it keeps a digest, by which a dry run shows whether two containers differ in anything
// but their images.
func trimContainer(c corev1.Container) corev1.Container {
	c.Args = []string{digest(c)}
	c.Name, c.Image = Shared(c.Name), Shared(c.Image)
	c.Command, c.EnvFrom, c.VolumeDevices = nil, nil, nil
	c.LivenessProbe, c.SecurityContext = nil, nil
	if c.ReadinessProbe != nil {
		c.ReadinessProbe = someProbe
	}
	if c.StartupProbe != nil {
		c.StartupProbe = &corev1.Probe{PeriodSeconds: c.StartupProbe.PeriodSeconds}
	}
	c.Resources, c.ResizePolicy, c.Ports = trimResources(c.Resources), trimPolicies(c.ResizePolicy), nil
	c.Env = each(c.Env, func(env corev1.EnvVar) corev1.EnvVar { return corev1.EnvVar{Name: Shared(env.Name)} })
	c.VolumeMounts = each(c.VolumeMounts, func(mount corev1.VolumeMount) corev1.VolumeMount {
		return corev1.VolumeMount{MountPath: Shared(mount.MountPath)}
	})
	return c
}

const digestPrefix = "stayput.dev/digest:"

// digest returns a digest of a container. Containers that differ only in what dryrun.ButForImage leaves out, or in their
// resizePolicy, have the same: the cache keeps what counts of that. A trimmed container has its digest already, as
// client-go may trim an object twice.
func digest(c corev1.Container) string {
	if len(c.Args) == 1 && strings.HasPrefix(c.Args[0], digestPrefix) {
		return c.Args[0]
	}
	c = dryrun.ButForImage(c)
	c.ResizePolicy = nil
	raw, err := c.Marshal()
	if err != nil {
		return "" // never, as the API server has sent the container in this form
	}
	return Shared(digestPrefix + strconv.FormatUint(maphash.Bytes(seed, raw), 36))
}
