package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
)

// statefulSetPrefix begins the names of StatefulSets, in kubectl's form.
const statefulSetPrefix = "statefulset/"

func (w world) ofStatefulSet(sts *appsv1.StatefulSet) workload {
	target := w.updateRevisionOf(sts)
	return workload{
		Object:   sts,
		selector: sts.Spec.Selector,
		pods:     w.members(sts),
		updated:  func(pod *corev1.Pod) bool { return isMemberOf(pod, target) },
		complete: func() error { return w.membersComplete(sts) },
		unmarked: func() error { return w.revisionsUnmarked(sts) },
	}
}

func (w world) statefulSet(name string) *appsv1.StatefulSet {
	for _, sts := range w.statefulSets {
		if sts.Name == name {
			return sts
		}
	}
	return nil
}

// statefulSetOf returns the StatefulSet that controls the pod, or nil.
func (w world) statefulSetOf(pod *corev1.Pod) *appsv1.StatefulSet {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return nil
	}
	return w.statefulSets[owner.UID]
}

// members returns the live pods of the StatefulSet, lowest ordinal first.
func (w world) members(sts *appsv1.StatefulSet) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range w.pods {
		if alive(pod) && metav1.IsControlledBy(pod, sts) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return ordinalOf(a) - ordinalOf(b) })
	return pods
}

// ordinalOf returns the number at the end of the pod's name.
func ordinalOf(pod *corev1.Pod) int {
	ordinal, err := strconv.Atoi(pod.Name[strings.LastIndex(pod.Name, "-")+1:])
	if err != nil {
		panic(fmt.Sprintf("pod %s has no ordinal", pod.Name))
	}
	return ordinal
}

// updateRevisionOf returns the newest ControllerRevision with the StatefulSet's template, or nil.
func (w world) updateRevisionOf(sts *appsv1.StatefulSet) *appsv1.ControllerRevision {
	var newest *appsv1.ControllerRevision
	for _, revision := range w.revisions {
		owned := metav1.IsControlledBy(revision, sts) && sameTemplate(templateIn(revision), sts.Spec.Template)
		if owned && (newest == nil || revision.Revision > newest.Revision) {
			newest = revision
		}
	}
	return newest
}

// isMemberOf reports whether the pod's label has the name of the revision.
func isMemberOf(pod *corev1.Pod, revision *appsv1.ControllerRevision) bool {
	return revision != nil && pod.Labels[daemonHashLabel] == revision.Name
}

func replicasOfStatefulSet(sts *appsv1.StatefulSet) int {
	if sts.Spec.Replicas == nil {
		return 1
	}
	return int(*sts.Spec.Replicas)
}

func partitionOf(sts *appsv1.StatefulSet) int {
	if rolling := sts.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		return int(*rolling.Partition)
	}
	return 0
}

// mayBeUnavailableMembers is getStatefulSetMaxUnavailable of pkg/controller/statefulset/stateful_set_utils.go.
func mayBeUnavailableMembers(sts *appsv1.StatefulSet) int {
	rolling := sts.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable == nil {
		return 1
	}
	scaled, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, replicasOfStatefulSet(sts), false)
	if err != nil {
		panic(fmt.Sprintf("maxUnavailable %s got past the API server: %v", rolling.MaxUnavailable, err))
	}
	return max(1, scaled)
}

// membersRolledOut returns what `kubectl rollout status` says: k8s.io/kubectl/pkg/polymorphichelpers/rollout_status.go.
func membersRolledOut(sts *appsv1.StatefulSet) (bool, string) {
	status, replicas := sts.Status, replicasOfStatefulSet(sts)
	switch {
	case status.ObservedGeneration == 0 || sts.Generation > status.ObservedGeneration:
		return false, fmt.Sprintf("generation %d is not observed, but %d", sts.Generation, status.ObservedGeneration)
	case int(status.ReadyReplicas) < replicas:
		return false, fmt.Sprintf("%d of %d pods ready", status.ReadyReplicas, replicas)
	case int(status.UpdatedReplicas) < replicas-partitionOf(sts):
		return false, fmt.Sprintf("%d of %d pods updated", status.UpdatedReplicas, replicas-partitionOf(sts))
	}
	return true, "rolled out"
}

// membersComplete returns nil once the update of the StatefulSet is complete, else what is missing.
func (w world) membersComplete(sts *appsv1.StatefulSet) error {
	target := w.updateRevisionOf(sts)
	if target == nil {
		return fmt.Errorf("no ControllerRevision has the template of generation %d", sts.Generation)
	}
	if done, why := membersRolledOut(sts); !done {
		return fmt.Errorf("status: %s; pods: %s", why, w.ofStatefulSet(sts).tally())
	}
	pods := w.members(sts)
	if len(pods) != replicasOfStatefulSet(sts) {
		return fmt.Errorf("%d live pods instead of %d", len(pods), replicasOfStatefulSet(sts))
	}
	for _, pod := range pods {
		if ordinalOf(pod) < partitionOf(sts) {
			continue
		}
		if !isMemberOf(pod, target) || !ready(pod) {
			return fmt.Errorf("pod %s is not Ready and of revision %s", pod.Name, target.Name)
		}
		if err := follows(pod, sts.Spec.Template); err != nil {
			return fmt.Errorf("pod %s %w", pod.Name, err)
		}
	}
	return nil
}

// revisionsUnmarked returns nil if Stayput's marks are gone from the ControllerRevisions, and its own pods are gone.
func (w world) revisionsUnmarked(of metav1.Object) error {
	if err := w.pulled(of); err != nil {
		return err
	}
	for _, revision := range w.revisions {
		if _, marked := revision.Labels[updatingLabel]; marked && metav1.IsControlledBy(revision, of) {
			return fmt.Errorf("ControllerRevision %s is still marked as updating", revision.Name)
		}
	}
	return nil
}

func describeStatefulSet(sts *appsv1.StatefulSet) string {
	status := sts.Status
	return fmt.Sprintf("gen=%d/%d want=%d status=%d current=%d updated=%d ready=%d available=%d %s->%s %s",
		sts.Generation, status.ObservedGeneration, replicasOfStatefulSet(sts), status.Replicas, status.CurrentReplicas,
		status.UpdatedReplicas, status.ReadyReplicas, status.AvailableReplicas, status.CurrentRevision, status.UpdateRevision,
		shortImages(sts.Spec.Template.Spec))
}

// memberAgreement checks that the label of a StatefulSet's live pod agrees with its spec, if it names a revision: in between a pod has a
// label of none.
func (j *judge) memberAgreement(e event, pod *corev1.Pod) {
	sts := j.statefulSetOf(pod)
	if e.what == watch.Deleted || !alive(pod) || sts == nil {
		return
	}
	for _, revision := range j.written {
		if !metav1.IsControlledBy(revision, sts) || revision.Name != pod.Labels[daemonHashLabel] {
			continue
		}
		template := templateIn(revision)
		if !hasImages(pod, template.Spec) {
			j.violation(e, "is of %s, but has images %v instead of %v", revision.Name, imagesOf(pod.Spec), imagesOf(template.Spec))
		}
		j.arrival(e, pod, revision.Name, template.Spec)
	}
}

// memberStatus checks that `kubectl rollout status` reports success only when the update is complete, and that updatedReplicas and
// currentReplicas are numbers that have been true.
func (j *judge) memberStatus(e event, sts *appsv1.StatefulSet) {
	status := sts.Status
	if e.what == watch.Deleted || sts.DeletionTimestamp != nil || status.ObservedGeneration < sts.Generation {
		return
	}
	for revision, pods := range map[string]int32{
		status.CurrentRevision: status.CurrentReplicas, status.UpdateRevision: status.UpdatedReplicas,
	} {
		if pods > 0 && !j.counts[daemonPlace(sts.UID, revision)][int(pods)] {
			j.violation(e, "says that %d pods are of %s, which has never been true", pods, revision)
		}
	}
	if done, _ := membersRolledOut(sts); !done {
		return
	}
	for _, pod := range j.members(sts) {
		if ordinalOf(pod) >= partitionOf(sts) && (!isMemberOf(pod, j.updateRevisionOf(sts)) || !j.hasServed(pod)) {
			j.violation(e, "says it is rolled out before pod %s is (%s)", pod.Name, describePod(pod))
		}
	}
}

// memberOutage checks availability as for Deployments.
func (j *judge) memberOutage(e event, sts *appsv1.StatefulSet) {
	if sts != nil && sts.DeletionTimestamp == nil {
		j.missing(e, sts, replicasOfStatefulSet(sts), mayBeUnavailableMembers(sts),
			availableOf(j.members(sts), sts.Spec.MinReadySeconds, e.at))
	}
}
