package e2e

import (
	"bytes"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// nativeWriter is the field manager of the native controllers.
const nativeWriter = "kube-controller-manager"

// revisionBy finds the revision of a DaemonSet or StatefulSet that the label of a pod stands for, even after its deletion. It returns nil
// if there never was one.
func (j *judge) revisionBy(of metav1.Object, pod *corev1.Pod,
	stands func(*corev1.Pod, *appsv1.ControllerRevision) bool) *appsv1.ControllerRevision {
	for _, revision := range j.written {
		if stands(pod, revision) && metav1.IsControlledBy(revision, of) {
			return revision
		}
	}
	return nil
}

// daemonAgreement checks that the hash label of a DaemonSet's live pod agrees with its spec. A pod that is partially patched has the hash
// of no revision. It gets its hash when it is done.
func (j *judge) daemonAgreement(e event, pod *corev1.Pod) {
	ds := j.daemonSetOf(pod)
	if e.what == watch.Deleted || !alive(pod) || ds == nil {
		return
	}
	j.revisionFrozen(e, pod)
	revision := j.revisionBy(ds, pod, isOf)
	if revision == nil {
		j.between(e, pod)
		return
	}
	template := templateIn(revision)
	j.hasLabels(e, pod, "of "+revision.Name, template)
	if !j.asCreated(pod) && !hasImages(pod, template.Spec) {
		j.violation(e, "is of %s, but has images %v instead of %v", revision.Name, imagesOf(pod.Spec), imagesOf(template.Spec))
	}
	j.arrival(e, pod, revision.Name, template.Spec)
}

// between checks that a pod with the hash of no revision is partially patched.
func (j *judge) between(e event, pod *corev1.Pod) {
	if hash := pod.Labels[daemonHashLabel]; hash != inBetween || !j.partial(pod) && !notesResize(pod) {
		j.violation(e, "has the hash %q of no revision", hash)
	}
}

// revisionFrozen checks that a pod of a DaemonSet or StatefulSet keeps its revision where nothing may move.
func (j *judge) revisionFrozen(e event, pod *corev1.Pod) {
	before, now := j.owners[pod.UID], placeOf(pod)
	if j.phaseAt(e.version, j.workloadOf(pod)).rules.UpdatesOnly != "" && before != "" && before != now {
		j.violation(e, "moved to revision %s, although nothing may move", pod.Labels[daemonHashLabel])
	}
}

// unrevised checks that a ControllerRevision keeps its data and all labels except Stayput's marks, that only the native controller writes
// its data and number, and that the number changes only as natively: to the highest.
func (j *judge) unrevised(e event, before, revision *appsv1.ControllerRevision) {
	for _, entry := range revision.ManagedFields {
		if entry.Manager != nativeWriter && !slices.Contains(besideUsers, entry.Manager) && ownsContent(entry) {
			j.violation(e, "%s wrote its data or number", entry.Manager)
		}
	}
	if before == nil {
		j.written[revision.UID] = revision
		return
	}
	first := j.written[revision.UID]
	if !bytes.Equal(first.Data.Raw, revision.Data.Raw) {
		j.violation(e, "has other data than at creation")
	}
	if !maps.Equal(withoutMarks(first.Labels), withoutMarks(revision.Labels)) {
		j.violation(e, "has other labels than at creation")
	}
	if before.Revision != revision.Revision && revision.Revision <= j.highestNumber(revision) {
		j.violation(e, "went from revision %d to %d, not to the highest", before.Revision, revision.Revision)
	}
}

func ownsContent(entry metav1.ManagedFieldsEntry) bool {
	fields := entry.FieldsV1.GetRawBytes()
	return bytes.Contains(fields, []byte(`"f:data"`)) || bytes.Contains(fields, []byte(`"f:revision"`))
}

func withoutMarks(labels map[string]string) map[string]string {
	others := maps.Clone(labels)
	maps.DeleteFunc(others, func(key, _ string) bool {
		return slices.Contains([]string{updatingLabel, renewedLabel, currentLabel}, key)
	})
	return others
}

// highestNumber returns the highest number of the other ControllerRevisions of the same DaemonSet.
func (j *judge) highestNumber(than *appsv1.ControllerRevision) int64 {
	highest := int64(0)
	for _, revision := range j.revisions {
		of := metav1.GetControllerOf(than)
		if revision.UID != than.UID && of != nil && metav1.IsControlledBy(revision, &metav1.ObjectMeta{UID: of.UID}) {
			highest = max(highest, revision.Revision)
		}
	}
	return highest
}

// daemonStatus checks that `kubectl rollout status` reports success only when the update is complete, and that updatedNumberScheduled is a
// number that has been true.
func (j *judge) daemonStatus(e event, ds *appsv1.DaemonSet) {
	status := ds.Status
	if e.what == watch.Deleted || ds.DeletionTimestamp != nil || status.ObservedGeneration < ds.Generation {
		return
	}
	if updated := int(status.UpdatedNumberScheduled); updated > 0 && !j.hasBeen(ds, updated) {
		j.violation(e, "says updatedNumberScheduled %d, which has never been true", updated)
	}
	if done, _ := daemonsRolledOut(ds); !done {
		return
	}
	if j.nodesThatServed(ds) < int(status.DesiredNumberScheduled) {
		j.violation(e, "says it is rolled out to %d nodes with %s", status.DesiredNumberScheduled, j.ofDaemonSet(ds).podCounts())
	}
}

// nodesThatServed returns on how many nodes a pod of the update revision has served. As natively, one that terminates counts as long as it
// is Ready (updateDaemonSetStatus in pkg/controller/daemon/daemon_controller.go).
func (j *judge) nodesThatServed(ds *appsv1.DaemonSet) int {
	target, served := j.updateRevision(ds), map[string]bool{}
	for _, pod := range j.pods {
		if metav1.IsControlledBy(pod, ds) && isOf(pod, target) && j.hasServed(pod) && (alive(pod) || ready(pod)) {
			served[pod.Spec.NodeName] = true
		}
	}
	return len(served)
}

// hasBeen reports whether the newest revision has had so many live pods.
func (j *judge) hasBeen(ds *appsv1.DaemonSet, pods int) bool {
	target := j.updateRevision(ds)
	return target != nil && j.counts[daemonPlace(ds.UID, target.Labels[daemonHashLabel])][pods]
}

// daemonOutage checks availability as for Deployments, relative to the number of pods that the native controller counts. Pods on
// unreachable nodes count as misscheduled.
func (j *judge) daemonOutage(e event, ds *appsv1.DaemonSet) {
	if ds != nil && ds.DeletionTimestamp == nil {
		counted := int(ds.Status.DesiredNumberScheduled + ds.Status.NumberMisscheduled)
		j.missing(e, ds, counted, mayBeUnavailableDaemons(ds), j.available(e, j.daemonPods(ds), ds.Spec.MinReadySeconds))
	}
}
