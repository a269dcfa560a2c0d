package e2e

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// pulls reports whether a pod is a pre-pull pod.
func pulls(pod *corev1.Pod) bool {
	_, labelled := pod.Labels[prePullLabel]
	return labelled
}

// pulled returns nil if no pre-pull pod of the workload is left.
func (w world) pulled(of metav1.Object) error {
	for _, prePullPod := range w.prePullPods {
		if prePullPod.Labels[prePullLabel] == string(of.GetUID()) {
			return fmt.Errorf("pre-pull pod %s is still there", prePullPod.Name)
		}
	}
	return nil
}

// prePullPod checks that a pre-pull pod has an owner, so that the garbage collector deletes it with its workload, that no native controller
// controls it, and that it never runs the image that it pulls.
func (j *judge) prePullPod(e event, pod *corev1.Pod) {
	if e.what == watch.Deleted {
		return
	}
	if len(pod.OwnerReferences) == 0 && !j.phaseAt(e.version, "").rules.Orphans {
		j.violation(e, "pulls an image, but has no owner")
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && (owner.Kind == "ReplicaSet" || owner.Kind == "DaemonSet") {
		j.violation(e, "pulls an image, but is controlled by %s %s", owner.Kind, owner.Name)
	}
	for name, image := range imagesOf(pod.Spec) {
		if strings.Contains(image, "/app:") {
			j.violation(e, "pulls an image, but its container %s runs %s", name, image)
		}
	}
	j.unselected(e, pod)
}

// unselected checks that no workload's selector matches a pre-pull pod. So no workload counts it, and no Service with that selector sends
// requests to it.
func (j *judge) unselected(e event, prePullPod *corev1.Pod) {
	for _, of := range j.workloads() {
		selector, err := metav1.LabelSelectorAsSelector(of.selector)
		if err != nil {
			panic(fmt.Sprintf("the selector of %s got past the API server: %v", of.GetName(), err))
		}
		if selector.Matches(labels.Set(prePullPod.Labels)) {
			j.violation(e, "pulls an image, but is selected by %s", of.GetName())
		}
	}
}

// outlived checks that an update that is complete has left no pre-pull pods. It checks at the end, because scenarios end with complete
// updates.
func (j *judge) outlived() {
	for _, of := range j.workloads() {
		if err := j.pulled(of); err != nil && of.complete() == nil {
			j.violations = append(j.violations, fmt.Sprintf("the update of %s is over, but %v", of.GetName(), err))
		}
	}
}

// surge returns rules for at most so many surge pods, which are removed in the end. That their number is exact follows from the pods that
// are left.
func surge(pods int) Rules {
	return Rules{Created: Count{1, pods}, Deleted: Count{1, pods}, AllAvailable: true}
}

// allAvailable exempts workloads that may not surge.
func (r Rules) allAvailable(of metav1.Object) bool {
	return r.AllAvailable && of.GetAnnotations()[surgeSetting] != "never"
}

// surge checks that no pod is created beyond maxSurge where no pod may be unavailable. Natively only replicas add up to that: a terminating
// pod is alive for a moment after its replacement has been created.
func (j *judge) surge(e event, pod *corev1.Pod) {
	d := j.deploymentOf(pod)
	if e.what != watch.Added || d == nil {
		return
	}
	if rules := j.phaseAt(e.version, called(d)).rules; !rules.allAvailable(d) || rules.Created == anyNumber {
		return
	}
	if pods, most := len(j.podsOf(d)), int(replicasOf(d))+maySurge(d); pods > most {
		j.violation(e, "is one of %d pods, %d may be there", pods, most)
	}
}

// maySurge returns how many pods of d may exist beyond its replicas: deployment/util ResolveFenceposts.
func maySurge(d *appsv1.Deployment) int {
	if d.Spec.Strategy.RollingUpdate == nil {
		return 0
	}
	return scaledUp(d.Spec.Strategy.RollingUpdate.MaxSurge, int(replicasOf(d)))
}
