package observe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/amounts"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/findings"
	"github.com/stayput/stayput/inplace/readiness"
)

// A stub stands for an object of which nobody is likely to ask more than where it belongs, or which is too large to be kept. It has its
// identity, its controller, our marks, and what counts replicas.

const (
	// annotationOutline marks a stub in the cache; its value is the size of the object. No other object there has it, whatever people set.
	annotationOutline = "stayput.dev/outline"
	// annotationCrowded is on the stub of a pod that has more containers than one may have; its value is how many.
	annotationCrowded = "stayput.dev/outline-containers"
	// large is the size from which an object is not kept. Templates have a few KiB.
	large = 64 << 10
	// longestReference bounds the text of an owner reference, of which the API server asks only that it is not empty.
	longestReference = 1 << 10
)

// outlineLabels have values that the API server keeps short.
var outlineLabels = append([]string{
	inplace.LabelUpdate, inplace.LabelPrePull, appsv1.DefaultDeploymentUniqueLabelKey, appsv1.DefaultDaemonSetUniqueLabelKey,
}, inplace.Marks...)

// outlineSize returns the size of the object that a stub in the cache stands for; not ok if it is no stub.
func outlineSize(object client.Object) (size int, ok bool) {
	value, ok := object.GetAnnotations()[annotationOutline]
	if !ok {
		return 0, false
	}
	size, err := strconv.Atoi(value)
	return size, err == nil
}

// outlineOf returns the stub of an object of that size; the object itself if its type has none.
func outlineOf(object client.Object, size int) client.Object {
	if pod, is := object.(*corev1.Pod); is {
		return outlineOfPod(pod, size)
	}
	if of := typeFor(object); of != nil {
		return of.outlineOf(object, size)
	}
	return object
}

// outlineOfPod keeps what gates are opened by. Conditions are addressed by their place.
func outlineOfPod(pod *corev1.Pod, size int) *corev1.Pod {
	form := &corev1.Pod{ObjectMeta: outlineMeta(pod, size)}
	if isCrowded(pod) {
		form.Annotations[annotationCrowded] = strconv.Itoa(apps.ContainersOf(&pod.Spec))
	}
	form.Spec.NodeName, form.Status.Phase = pod.Spec.NodeName, pod.Status.Phase
	if readiness.Gated(pod) {
		form.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}}
		form.Status.Conditions = pod.Status.Conditions
	}
	return form
}

// isCrowded reports whether the pod has more containers than one may have. Such a pod is not even trimmed, only ever a stub.
func isCrowded(pod *corev1.Pod) bool { return apps.ContainersOf(&pod.Spec) > apps.MostContainers }

// crowded says of the stub of such a pod what it is; empty for any other.
func crowded(form client.Object) string {
	count, is := form.GetAnnotations()[annotationCrowded]
	if !is {
		return ""
	}
	return fmt.Sprintf("pod %s has %s containers, more than %d", form.GetName(), count, apps.MostContainers)
}

func outlineMeta(object metav1.Object, size int) metav1.ObjectMeta {
	form := metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), Generation: object.GetGeneration(),
		CreationTimestamp: object.GetCreationTimestamp(), DeletionTimestamp: object.GetDeletionTimestamp(),
		Annotations: map[string]string{annotationOutline: strconv.Itoa(size)},
	}
	labels := object.GetLabels()
	if labels != nil { // patches tell a map that is empty from one that is not there
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

// Compared is a pod that admission was asked about as the cache keeps running ones, with which it is compared; nil, with the reason as a clause,
// if that is too much to be kept.
func Compared(pod *corev1.Pod) (*corev1.Pod, string) {
	if isCrowded(pod) {
		return nil, fmt.Sprintf("admission makes it one of %d containers, more than %d", apps.ContainersOf(&pod.Spec), apps.MostContainers)
	}
	trim(pod)
	if size := sizeOf(pod); size > large {
		return nil, fmt.Sprintf("what would be compared of it with running pods has %d KiB, more than %d", size>>10, large>>10)
	}
	return pod, ""
}

// sizeOf is about how much memory an object takes.
func sizeOf(object client.Object) int {
	if pod, is := object.(*corev1.Pod); is {
		return pod.Size()
	}
	if of := typeFor(object); of != nil {
		return of.sizeOf(object)
	}
	return 0
}

// trim drops what nobody asks of an object. Nothing that a patch compares or addresses by its place is touched, and no map or
// list that is there becomes one that is not.
func trim(object client.Object) {
	object.SetManagedFields(nil)
	delete(object.GetAnnotations(), annotationOutline)
	delete(object.GetAnnotations(), annotationCrowded)
	if pod, ok := object.(*corev1.Pod); ok {
		pod.Labels = entries(pod.Labels, func(string) bool { return true })
		pod.Annotations = entries(pod.Annotations, readsAnnotation)
		trimSpec(&pod.Spec)
		trimStatus(pod)
	}
}

// A map or a list keeps the room of what is deleted from it, and lists that were decoded have room for more than they have: up to twice as much. So
// what is left goes into new ones.

// entries are those of the map that are wanted.
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

// each has of each item what is to be kept of it.
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

// Shared is the same text, which many objects have, as all pods of a template or all nodes, once in memory.
func Shared(text string) string { return unique.Make(text).Value() }

// readsAnnotation reports whether anybody asks for that annotation of a pod. Those that change in place are written without a look.
func readsAnnotation(key string) bool {
	return strings.HasPrefix(key, "stayput.dev/") || key == corev1.PodDeletionCost
}

// trimSpec drops what only kubelets and schedulers ask for. Volumes that are images tell what a puller pulls.
func trimSpec(spec *corev1.PodSpec) {
	spec.Volumes = imageVolumes(spec.Volumes)
	spec.EphemeralContainers = nil
	spec.Affinity, spec.TopologySpreadConstraints, spec.NodeSelector, spec.HostAliases, spec.DNSConfig = nil, nil, nil, nil, nil
	spec.Containers, spec.InitContainers = each(spec.Containers, trimContainer), each(spec.InitContainers, trimContainer)
}

// imageVolumes are few, and none mostly.
func imageVolumes(volumes []corev1.Volume) []corev1.Volume {
	if volumes == nil {
		return nil
	}
	kept := []corev1.Volume{}
	for _, volume := range volumes {
		if volume.Image != nil {
			kept = append(kept, volume)
		}
	}
	return kept
}

// trimStatus drops what is told of containers besides which ones run, since when and how.
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

// statusesOfSidecars are what is kept of init containers: of those that have ended, nobody asks.
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
	return corev1.ContainerStatus{Name: Shared(s.Name), State: s.State, LastTerminationState: trimEnd(s.LastTerminationState), Ready: s.Ready, RestartCount: s.RestartCount,
		Image: Shared(s.Image), ImageID: Shared(s.ImageID), ContainerID: s.ContainerID, Resources: trimReported(s.Resources)}
}

// trimEnd leaves which container ended last, and when.
func trimEnd(s corev1.ContainerState) corev1.ContainerState {
	if s.Terminated == nil {
		return corev1.ContainerState{}
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: s.Terminated.FinishedAt, ContainerID: s.Terminated.ContainerID}}
}

// trimPolicies keeps those that ask for a restart.
func trimPolicies(policies []corev1.ContainerResizePolicy) []corev1.ContainerResizePolicy {
	var restarts []corev1.ContainerResizePolicy
	for _, policy := range policies {
		if policy.RestartPolicy == corev1.RestartContainer {
			restarts = append(restarts, policy)
		}
	}
	return restarts
}

// trimResources leaves CPU and memory, which all pods of a template share. A list that is there stays.
func trimResources(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	text := fmt.Sprint(amounts.Of(corev1.ResourceRequirements{Requests: r.Requests}), amounts.Of(corev1.ResourceRequirements{Limits: r.Limits}),
		r.Requests == nil, r.Limits == nil)
	return ofResources.Of(text, len(text), func() corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: amounts.Only(r.Requests), Limits: amounts.Only(r.Limits)}
	})
}

// ofResources are the resources of containers, by what they are.
var ofResources findings.Findings[string, corev1.ResourceRequirements]

func trimReported(r *corev1.ResourceRequirements) *corev1.ResourceRequirements {
	if r == nil {
		return nil
	}
	trimmed := trimResources(*r)
	return &trimmed
}

// someProbe stands for every readiness probe: that there is one is all that is asked. Nobody writes to what the cache has.
var someProbe = &corev1.Probe{}

// trimContainer leaves the names of variables and the places of volumes: by them a rehearsal tells what admission adds.
func trimContainer(c corev1.Container) corev1.Container {
	c.Name, c.Image = Shared(c.Name), Shared(c.Image)
	c.Command, c.Args, c.EnvFrom, c.VolumeDevices = nil, nil, nil, nil
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
