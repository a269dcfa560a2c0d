package observe

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// A stub stands for an object of which nobody is likely to ask more than where it belongs, or which is too large to be kept. It has its
// identity, its controller, our marks, and what counts replicas.

const (
	// annotationStub marks a stub in the cache; its value is the size of the object. No other object there has it, whatever people set.
	annotationStub = "stayput.dev/stub"
	// large is the size from which an object is not kept. Templates have a few KiB.
	large = 64 << 10
	// longestReference bounds the text of an owner reference, of which the API server asks only that it is not empty.
	longestReference = 1 << 10
)

// stubLabels have values that the API server keeps short.
var stubLabels = []string{
	inplace.LabelUpdate, inplace.LabelSettling, inplace.LabelReleased, inplace.LabelWoken, inplace.LabelBorrowed, inplace.LabelReplicas, inplace.LabelSlipped,
	inplace.LabelPuller,
	"pod-template-hash", "controller-revision-hash",
}

// stubSize returns the size of the object that a stub in the cache stands for; not ok if it is no stub.
func stubSize(object client.Object) (size int, ok bool) {
	value, ok := object.GetAnnotations()[annotationStub]
	if !ok {
		return 0, false
	}
	size, err := strconv.Atoi(value)
	return size, err == nil
}

// stubOf returns the stub of an object of that size; the object itself if its kind has none.
func stubOf(object client.Object, size int) client.Object {
	switch o := object.(type) {
	case *inplace.Deployment:
		return &inplace.Deployment{ObjectMeta: stubMeta(o.ObjectMeta, size)}
	case *inplace.DaemonSet:
		return &inplace.DaemonSet{ObjectMeta: stubMeta(o.ObjectMeta, size)}
	case *inplace.ReplicaSet:
		stub := &inplace.ReplicaSet{ObjectMeta: stubMeta(o.ObjectMeta, size), Status: o.Status}
		stub.Spec.Replicas, stub.Status.Conditions = o.Spec.Replicas, nil
		return stub
	case *inplace.ControllerRevision:
		return &inplace.ControllerRevision{ObjectMeta: stubMeta(o.ObjectMeta, size), Revision: o.Revision}
	case *corev1.Pod:
		return stubOfPod(o, size)
	default:
		return object
	}
}

// stubOfPod keeps what gates are opened by. Conditions are addressed by their place.
func stubOfPod(pod *corev1.Pod, size int) *corev1.Pod {
	stub := &corev1.Pod{ObjectMeta: stubMeta(pod.ObjectMeta, size)}
	stub.Spec.NodeName, stub.Status.Phase = pod.Spec.NodeName, pod.Status.Phase
	if inplace.Gated(pod) {
		stub.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}}
		stub.Status.Conditions = pod.Status.Conditions
	}
	return stub
}

func stubMeta(meta metav1.ObjectMeta, size int) metav1.ObjectMeta {
	stub := metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion, Generation: meta.Generation,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp,
		Annotations: map[string]string{annotationStub: strconv.Itoa(size)},
	}
	if meta.Labels != nil { // patches tell a map that is empty from one that is not there
		stub.Labels = map[string]string{}
	}
	for _, key := range stubLabels {
		if value, has := meta.Labels[key]; has {
			stub.Labels[key] = value
		}
	}
	owner := metav1.GetControllerOf(&meta)
	if owner != nil && len(owner.APIVersion)+len(owner.Kind)+len(owner.Name)+len(owner.UID) <= longestReference {
		stub.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return stub
}

// sizeOf is about how much memory an object takes.
func sizeOf(object client.Object) int {
	switch o := object.(type) {
	case *inplace.Deployment:
		return o.ObjectMeta.Size() + o.Spec.Size() + o.Spec.Template.Size() + o.Status.Size()
	case *inplace.DaemonSet:
		return o.ObjectMeta.Size() + o.Spec.Size() + o.Spec.Template.Size() + o.Status.Size()
	case *inplace.ReplicaSet:
		return o.ObjectMeta.Size() + o.Spec.Size() + o.Spec.Template.Size() + o.Status.Size()
	case *inplace.ControllerRevision:
		return o.ObjectMeta.Size() + len(o.Data)
	case *corev1.Pod:
		return o.Size()
	default:
		return 0
	}
}

// trim drops in place what nobody asks of an object. Nothing that a patch compares or addresses by its place is touched, and no map or
// list that is there becomes one that is not.
func trim(object client.Object, rules inplace.Rules) {
	object.SetManagedFields(nil)
	delete(object.GetAnnotations(), annotationStub)
	if pod, ok := object.(*corev1.Pod); ok {
		maps.DeleteFunc(pod.Annotations, func(key, _ string) bool { return !readsAnnotation(key, rules) })
		trimSpec(&pod.Spec)
		pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses = nil, nil
	}
}

// readsAnnotation tells whether anybody asks for that annotation of a pod.
func readsAnnotation(key string, rules inplace.Rules) bool {
	return strings.HasPrefix(key, "stayput.dev/") || key == corev1.PodDeletionCost || slices.Contains(rules.Annotations, key)
}

// trimSpec drops what only kubelets and schedulers ask for. Volumes that are images tell what a puller pulls.
func trimSpec(spec *corev1.PodSpec) {
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Image == nil })
	spec.EphemeralContainers = nil
	spec.Affinity, spec.TopologySpreadConstraints, spec.NodeSelector, spec.HostAliases, spec.DNSConfig = nil, nil, nil, nil, nil
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			trimContainer(&containers[i])
		}
	}
}

// trimContainer leaves the names of variables and the places of volumes: by them a rehearsal tells what admission adds.
func trimContainer(c *corev1.Container) {
	c.Command, c.Args, c.EnvFrom, c.VolumeDevices = nil, nil, nil, nil
	c.LivenessProbe, c.ReadinessProbe, c.SecurityContext = nil, nil, nil
	if c.StartupProbe != nil {
		c.StartupProbe = &corev1.Probe{PeriodSeconds: c.StartupProbe.PeriodSeconds}
	}
	c.Resources, c.ResizePolicy, c.Ports = corev1.ResourceRequirements{}, nil, nil
	for i := range c.Env {
		c.Env[i] = corev1.EnvVar{Name: c.Env[i].Name}
	}
	for i := range c.VolumeMounts {
		c.VolumeMounts[i] = corev1.VolumeMount{MountPath: c.VolumeMounts[i].MountPath}
	}
}
