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

// pulls says whether a pod is there only to get images onto its node.
func pulls(pod *corev1.Pod) bool {
	_, labelled := pod.Labels[pullerLabel]
	return labelled
}

// pulled is nil if no puller of the workload is left.
func (w world) pulled(of metav1.Object) error {
	for _, prePullPod := range w.prePullPods {
		if prePullPod.Labels[pullerLabel] == string(of.GetUID()) {
			return fmt.Errorf("puller %s is still there", prePullPod.Name)
		}
	}
	return nil
}

// prePullPod: somebody owns it, so that it goes with its workload, no native controller takes it for a pod of its own, and it never runs the image it pulls.
func (j *judge) prePullPod(e event, pod *corev1.Pod) {
	if e.what == watch.Deleted {
		return
	}
	if len(pod.OwnerReferences) == 0 && !j.phaseAt(e.version, "").rules.Orphans {
		j.violation(e, "pulls an image, but nobody owns it")
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

// unselected: no workload counts a puller as ready, and so does no Service that has the selector of a workload.
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

// outlived: when an update is over its pullers are gone. Asked in the end, as scenarios end with updates that are over.
func (j *judge) outlived() {
	for _, of := range j.workloads() {
		if err := j.pulled(of); err != nil && of.complete() == nil {
			j.violations = append(j.violations, fmt.Sprintf("the update of %s is over, but %v", of.GetName(), err))
		}
	}
}

// surge: up to so many pods are lent, and given back. That it is as many, the pods tell that are there in the end.
func surge(pods int) Rules {
	return Rules{Created: Count{1, pods}, Deleted: Count{1, pods}, Whole: true}
}

// whole: those that may not borrow are exempt.
func (r Rules) whole(of metav1.Object) bool { return r.Whole && of.GetLabels()[borrowLabel] != "false" }

// surge: no pod is created beyond maxSurge where none may be missing. Natively only replicas add up to that: a pod that is told to go
// stays alive for a moment after its replacement has come.
func (j *judge) surge(e event, pod *corev1.Pod) {
	d := j.deploymentOf(pod)
	if e.what != watch.Added || d == nil {
		return
	}
	if rules := j.phaseAt(e.version, called(d)).rules; !rules.whole(d) || rules.Created == anyNumber {
		return
	}
	if pods, most := len(j.podsOf(d)), int(replicasOf(d))+maySurge(d); pods > most {
		j.violation(e, "is one of %d pods, %d may be there", pods, most)
	}
}

// maySurge is how many pods of d may be there beyond its replicas: deployment/util ResolveFenceposts.
func maySurge(d *appsv1.Deployment) int {
	if d.Spec.Strategy.RollingUpdate == nil {
		return 0
	}
	return scaledUp(d.Spec.Strategy.RollingUpdate.MaxSurge, int(replicasOf(d)))
}
