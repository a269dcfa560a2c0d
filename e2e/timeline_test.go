package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// timeline returns every relevant change, one line each, in the order in which they happened.
func timeline(events []event, phases []phase, started time.Time) string {
	var lines []string
	last, next := map[types.UID]string{}, 0
	for _, e := range events {
		for ; next < len(phases) && e.version > phases[next].from; next++ {
			lines = append(lines, fmt.Sprintf("---- %s", &phases[next]))
		}
		line := fmt.Sprintf("%s/%s %s", kindOf(e.object), e.object.GetName(), describe(e))
		if last[e.object.GetUID()] == line {
			continue
		}
		last[e.object.GetUID()] = line
		lines = append(lines, fmt.Sprintf("%d %6.1fs %s", e.version, e.at.Sub(started).Seconds(), line))
	}
	return strings.Join(lines, "\n")
}

func kindOf(object metav1.Object) string {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return "deploy"
	case *appsv1.ReplicaSet:
		return "rs"
	case *appsv1.DaemonSet:
		return "ds"
	case *appsv1.StatefulSet:
		return "sts"
	case *appsv1.ControllerRevision:
		return "revision"
	case *discoveryv1.EndpointSlice:
		return "slice"
	case *corev1.Pod:
		if pulls(object) {
			return "pre-pull pod"
		}
	}
	return "pod"
}

func describe(e event) string {
	if e.what == watch.Deleted {
		return "DELETED"
	}
	switch object := e.object.(type) {
	case *appsv1.Deployment:
		return describeDeployment(object)
	case *appsv1.ReplicaSet:
		return describeSet(object)
	case *appsv1.DaemonSet:
		return describeDaemonSet(object)
	case *appsv1.StatefulSet:
		return describeStatefulSet(object)
	case *appsv1.ControllerRevision:
		return fmt.Sprintf("rev=%d %s%s", object.Revision, shortImages(templateIn(object).Spec), marksOf(object))
	case *discoveryv1.EndpointSlice:
		return "offers " + strings.Join(offeredBy(object), " ")
	case *corev1.Pod:
		return describePod(object)
	}
	return ""
}

func describeDeployment(d *appsv1.Deployment) string {
	status, reason := d.Status, "-"
	if condition := progressing(d); condition != nil {
		reason = condition.Reason
	}
	return fmt.Sprintf("gen=%d/%d want=%d status=%d updated=%d ready=%d available=%d paused=%t %s %s",
		d.Generation, status.ObservedGeneration, replicasOf(d), status.Replicas, status.UpdatedReplicas, status.ReadyReplicas,
		status.AvailableReplicas, d.Spec.Paused, reason, shortImages(d.Spec.Template.Spec))
}

func describeSet(set *appsv1.ReplicaSet) string {
	replicas := int32(1)
	if set.Spec.Replicas != nil {
		replicas = *set.Spec.Replicas
	}
	return fmt.Sprintf("gen=%d/%d want=%d status=%d ready=%d available=%d rev=%d %s%s",
		set.Generation, set.Status.ObservedGeneration, replicas, set.Status.Replicas, set.Status.ReadyReplicas,
		set.Status.AvailableReplicas, revisionOf(set), shortImages(set.Spec.Template.Spec), marksOf(set))
}

func marksOf(revision metav1.Object) string {
	marks := ""
	for _, label := range []string{updatingLabel, renewedLabel} {
		if value, marked := revision.GetLabels()[label]; marked {
			marks += fmt.Sprintf(" %s=%s", strings.TrimPrefix(label, "stayput.dev/"), value)
		}
	}
	return marks
}

func describePod(pod *corev1.Pod) string {
	owner, ending := "-", ""
	if of := metav1.GetControllerOf(pod); of != nil {
		owner = of.Name
	}
	if pod.DeletionTimestamp != nil {
		ending = " terminating"
	}
	return fmt.Sprintf("under=%s hash=%s on=%s gen=%d/%d ready=%s containers=%s restarts=%v %s%s%s",
		owner, cmp.Or(pod.Labels[hashLabel], pod.Labels[daemonHashLabel]), pod.Spec.NodeName, pod.Generation, pod.Status.ObservedGeneration,
		short(pod, corev1.PodReady), short(pod, corev1.ContainersReady), restartsOf(pod),
		shortImages(pod.Spec), waiting(pod), ending)
}

func short(pod *corev1.Pod, kind corev1.PodConditionType) string {
	condition := conditionOf(pod, kind)
	if condition == nil {
		return "-"
	}
	if condition.Reason == outReason {
		return "out"
	}
	return string(condition.Status[0])
}

// shortImages leaves out the registry, which is the same for all images.
func shortImages(spec corev1.PodSpec) string {
	images := imagesOf(spec)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(images)) {
		all = append(all, name+"="+strings.TrimPrefix(images[name], registry))
	}
	return strings.Join(all, ",")
}

func waiting(pod *corev1.Pod) string {
	var reasons []string
	for _, status := range statusesOf(pod) {
		if status.State.Waiting != nil {
			reasons = append(reasons, status.State.Waiting.Reason)
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	return " " + strings.Join(reasons, ",")
}
