package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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

// keptAtPartition reports whether the partition keeps the pod. It counts from the first ordinal.
func keptAtPartition(sts *appsv1.StatefulSet, pod *corev1.Pod) bool {
	start := 0
	if sts.Spec.Ordinals != nil {
		start = int(sts.Spec.Ordinals.Start)
	}
	return ordinalOf(pod) < start+partitionOf(sts)
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
		return fmt.Errorf("status: %s; pods: %s", why, w.ofStatefulSet(sts).podCounts())
	}
	pods := w.members(sts)
	if len(pods) != replicasOfStatefulSet(sts) {
		return fmt.Errorf("%d live pods instead of %d", len(pods), replicasOfStatefulSet(sts))
	}
	for _, pod := range pods {
		if keptAtPartition(sts, pod) {
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

// inBetween is the hash of a pod of a DaemonSet or StatefulSet that is partially patched. No revision has it.
const inBetween = "updating-in-place"

// memberAgreement checks that the label of a StatefulSet's live pod agrees with its other labels and its spec, and with the containers that
// run if the pod is Ready. A pod that is partially patched has the label of no revision. Where managers are killed, a kubelet's report may
// say Ready before the old container has stopped.
func (j *judge) memberAgreement(e event, pod *corev1.Pod) {
	sts := j.statefulSetOf(pod)
	if e.what == watch.Deleted || !alive(pod) || sts == nil {
		return
	}
	j.revisionFrozen(e, pod)
	revision := j.revisionBy(sts, pod, isMemberOf)
	if revision == nil {
		j.between(e, pod)
		return
	}
	template := templateIn(revision)
	j.hasLabels(e, pod, "of "+revision.Name, template)
	if !hasImages(pod, template.Spec) {
		j.violation(e, "is of %s, but has images %v instead of %v", revision.Name, imagesOf(pod.Spec), imagesOf(template.Spec))
	}
	if ready(pod) && !runsWhatItSays(pod) && !j.phaseAt(e.version, called(sts)).unbounded() {
		j.violation(e, "is Ready and of %s, but runs %v instead of %v", revision.Name, runningImages(pod), imagesOf(pod.Spec))
	}
	j.arrival(e, pod, revision.Name, template.Spec)
}

// runsWhatItSays reports whether the containers that the kubelet reports have the images of the pod's spec, under any name of the registry,
// with or without a digest.
func runsWhatItSays(pod *corev1.Pod) bool {
	said := imagesOf(pod.Spec)
	for name, image := range runningImages(pod) {
		if known := said[name] != ""; known && plainName(image) != plainName(said[name]) {
			return false
		}
	}
	return true
}

// runningImages returns the images that the kubelet reports.
func runningImages(pod *corev1.Pod) map[string]string {
	images := map[string]string{}
	for _, status := range statusesOf(pod) {
		images[status.Name] = status.Image
	}
	return images
}

// plainName returns the image's name in the registry, without a digest.
func plainName(image string) string {
	name, _, _ := strings.Cut(strings.Replace(image, mirror, registry, 1), "@")
	return name
}

// memberStatus checks that `kubectl rollout status` reports success only when the update is complete, and that updatedReplicas and
// currentReplicas are numbers that have been true.
func (j *judge) memberStatus(e event, sts *appsv1.StatefulSet) {
	if e.what == watch.Deleted || !observed(sts) {
		return
	}
	for revision, pods := range countsOf(sts) {
		if pods > 0 && !j.counts[daemonPlace(sts.UID, revision)][pods] {
			j.violation(e, "says that %d pods are of %s, which has never been true", pods, revision)
		}
	}
	if done, _ := membersRolledOut(sts); !done {
		return
	}
	pods := j.members(sts)
	if wanted := replicasOfStatefulSet(sts); len(pods) < wanted && !j.phaseAt(e.version, called(sts)).rules.Outage {
		j.violation(e, "says it is rolled out with %d live pods of %d", len(pods), wanted)
	}
	for _, pod := range pods {
		if !keptAtPartition(sts, pod) && (!isMemberOf(pod, j.updateRevisionOf(sts)) || !j.hasServed(pod)) {
			j.violation(e, "says it is rolled out before pod %s is (%s)", pod.Name, describePod(pod))
		}
	}
}

// observed reports whether the status is about the spec, of a StatefulSet that stays.
func observed(sts *appsv1.StatefulSet) bool {
	return sts.DeletionTimestamp == nil && sts.Status.ObservedGeneration >= sts.Generation
}

// countsOf returns how many pods the status counts, by revision.
func countsOf(sts *appsv1.StatefulSet) map[string]int {
	counts := map[string]int{sts.Status.CurrentRevision: int(sts.Status.CurrentReplicas)}
	counts[sts.Status.UpdateRevision] = int(sts.Status.UpdatedReplicas)
	return counts
}

// mostLag is how long the status of a StatefulSet may differ from the labels of its pods where it is updated in place. Its controller needs
// less than a second where the machine is not busy. Where managers are killed, it waits for their answers.
const mostLag = 10 * time.Second

// memberCounts checks that currentReplicas and updatedReplicas follow the labels of the pods. It records the longest time for which they
// did not.
func (j *judge) memberCounts(e event, sts *appsv1.StatefulSet) {
	if sts == nil {
		return
	}
	since, differed := j.differs[sts.UID]
	if !observed(sts) {
		delete(j.differs, sts.UID)
		return
	}
	wrong := j.wrongCount(sts)
	if wrong != "" && !differed {
		j.differs[sts.UID] = e.at
		return
	}
	if differed {
		in, lag := j.phaseAt(e.version, called(sts)), e.at.Sub(since)
		in.lag = max(in.lag, lag)
		if lag > mostLag && !in.unbounded() {
			j.violation(e, "the status of %s differs from its pods for %s: %s", sts.Name, lag, wrong)
		}
	}
	if wrong == "" {
		delete(j.differs, sts.UID)
	}
}

// wrongCount says in what the status differs from the labels of the pods. It is empty if it does not. A terminating pod may be counted.
func (j *judge) wrongCount(sts *appsv1.StatefulSet) string {
	for revision, pods := range countsOf(sts) {
		place := daemonPlace(sts.UID, revision)
		if live := j.livePods(place); pods < live || pods > j.scheduledPods(place) {
			return fmt.Sprintf("it counts %d pods of %s, and there are %d", pods, revision, live)
		}
	}
	return ""
}

// memberOutage checks availability as for Deployments.
func (j *judge) memberOutage(e event, sts *appsv1.StatefulSet) {
	if sts != nil && sts.DeletionTimestamp == nil {
		j.missing(e, sts, replicasOfStatefulSet(sts), mayBeUnavailableMembers(sts), j.available(e, j.members(sts), sts.Spec.MinReadySeconds))
	}
}
