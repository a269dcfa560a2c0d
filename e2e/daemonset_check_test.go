package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
)

// aDaemonSet returns a DaemonSet on 2 nodes, of which one pod may be unavailable. Its status says that this many pods are updated and
// available.
func aDaemonSet(version string, generation int64, updated int32) *appsv1.DaemonSet {
	one := intstr.FromInt32(1)
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "d", Generation: generation},
		Spec: appsv1.DaemonSetSpec{Template: template(version), UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
			Type:          appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &one},
		}},
		Status: appsv1.DaemonSetStatus{ObservedGeneration: generation, DesiredNumberScheduled: 2,
			UpdatedNumberScheduled: updated, NumberAvailable: updated},
	}
}

func aRevision(hash, version string, number int64) *appsv1.ControllerRevision {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template(version)}})
	if err != nil {
		panic(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: hash, UID: types.UID(hash), Labels: map[string]string{daemonHashLabel: hash},
			OwnerReferences: ownedByDaemonSet(), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: nativeWriter,
				FieldsV1: metav1.NewFieldsV1(`{"f:data":{},"f:revision":{}}`)}}},
		Data:     runtime.RawExtension{Raw: patch},
		Revision: number,
	}
}

func aDaemon(name, hash, version string, isReady bool) *corev1.Pod {
	pod := aPod(name, "", version, isReady)
	pod.OwnerReferences = ownedByDaemonSet()
	pod.Labels, pod.Spec.NodeName = map[string]string{"app": "d", daemonHashLabel: hash}, "node of "+name
	return pod
}

func ownedByDaemonSet() []metav1.OwnerReference {
	owners := ownedBy("d")
	owners[0].Kind = "DaemonSet"
	return owners
}

// daemonsBegun returns a completed rollout of v1, followed by an edit to v2.
func daemonsBegun() *story {
	s := &story{}
	s.tell(watch.Added, aDaemonSet("v1", 1, 0))
	s.tell(watch.Added, aRevision("old", "v1", 1))
	s.tell(watch.Added, aDaemon("p1", "old", "v1", true))
	s.tell(watch.Added, aDaemon("p2", "old", "v1", true))
	s.tell(watch.Modified, aDaemonSet("v1", 1, 2))
	edited := aDaemonSet("v2", 2, 2)
	edited.Status.ObservedGeneration = 1
	s.tell(watch.Modified, edited)
	s.tell(watch.Added, aRevision("new", "v2", 2))
	s.tell(watch.Modified, aDaemonSet("v2", 2, 0))
	s.tell(watch.Modified, markedRevision())
	return s
}

// movesDaemon adds events in which a pod is drained, patched and ready.
func (s *story) movesDaemon(pod string) {
	s.tell(watch.Modified, takesOut(aDaemon(pod, "old", "v1", false)))
	s.tell(watch.Modified, takesOut(aDaemon(pod, "new", "v2", false)))
	s.tell(watch.Modified, aDaemon(pod, "new", "v2", false))
	s.tell(watch.Modified, aDaemon(pod, "new", "v2", true))
}

func TestJudgeAcceptsADaemonSetUpdatedInPlace(t *testing.T) {
	s := daemonsBegun()
	s.movesDaemon("p1")
	s.tell(watch.Modified, aDaemonSet("v2", 2, 1))
	s.movesDaemon("p2")
	s.tell(watch.Modified, aDaemonSet("v2", 2, 2))
	if decision := s.decision(); decision != "" {
		t.Error(decision)
	}
}

// The DaemonSet controller counts a pod that terminates as long as it is Ready. One that was deleted while it moved is such a pod.
func TestJudgeGrantsWhatTheDaemonSetControllerCounts(t *testing.T) {
	for isReady, found := range map[bool]string{true: "", false: "says it is rolled out to 2 nodes"} {
		s := daemonsBegun()
		s.movesDaemon("p1")
		s.movesDaemon("p2")
		terminating := aDaemon("p2", "new", "v2", isReady)
		terminating.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
		s.tell(watch.Modified, terminating)
		s.tell(watch.Modified, aDaemonSet("v2", 2, 2))
		if decision := s.verdictUnder(anyChurn); !strings.Contains(decision, found) || (found == "") != (decision == "") {
			t.Errorf("Ready: %t: %q", isReady, decision)
		}
	}
}

func TestJudgeFindsWhatIsWrongWithADaemonSet(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*story)
		found string
	}{
		"created":         {func(s *story) { s.tell(watch.Added, aDaemon("p3", "new", "v2", true)) }, "created 1 pods"},
		"deleted":         {func(s *story) { s.tell(watch.Deleted, aDaemon("p1", "old", "v1", true)) }, "deleted 1 pods"},
		"image ahead":     {func(s *story) { s.tell(watch.Modified, aDaemon("p1", "old", "v2", true)) }, "has images"},
		"image behind":    {func(s *story) { s.tell(watch.Modified, aDaemon("p1", "new", "v1", true)) }, "has images"},
		"hash of nothing": {func(s *story) { s.tell(watch.Modified, aDaemon("p1", "other", "v2", true)) }, "of no revision"},
		"between, and drained": {func(s *story) {
			s.tell(watch.Modified, takesOut(aDaemon("p1", "old", "v1", true)))
			s.tell(watch.Modified, takesOut(aDaemon("p1", inBetween, "v2", true)))
		}, `has the hash "updating-in-place" of no revision`},
		"in service":          {func(s *story) { s.tell(watch.Modified, aDaemon("p1", "new", "v2", true)) }, "and was in service"},
		"label of another":    {func(s *story) { s.tell(watch.Modified, mislabelled()) }, "its label app is"},
		"too many at a time":  {bothDaemonsDrained, "2 of 2 pods are unavailable, 1 may be"},
		"early success":       {func(s *story) { s.movesDaemon("p1"); s.tell(watch.Modified, aDaemonSet("v2", 2, 2)) }, "rolled out to 2 nodes"},
		"invented count":      {func(s *story) { s.tell(watch.Modified, aDaemonSet("v2", 2, 1)) }, "which has never been true"},
		"data rewritten":      {func(s *story) { s.tell(watch.Modified, aRevision("old", "v2", 1)) }, "has other data"},
		"number not native":   {func(s *story) { s.tell(watch.Modified, aRevision("old", "v1", 2)) }, "went from revision 1 to 2"},
		"revision written":    {func(s *story) { s.tell(watch.Modified, writtenRevision()) }, "stayput wrote its data"},
		"revision relabelled": {func(s *story) { s.tell(watch.Modified, relabelledRevision()) }, "has other labels"},
	} {
		t.Run(name, func(t *testing.T) {
			s := daemonsBegun()
			c.spoil(s)
			if decision := s.decision(); !strings.Contains(decision, c.found) {
				t.Errorf("%q is not in %q", c.found, decision)
			}
		})
	}
}

// A pod that is resized, and the last endpoint of a Service, have the hash of no revision until they are done.
func TestJudgeGrantsDaemonsInBetween(t *testing.T) {
	for _, between := range []*corev1.Pod{
		marked(aDaemon("p1", inBetween, "v1", true), `{"hash":"old","resize":{"app":{}}}`),
		aDaemon("p1", inBetween, "v2", true),
	} {
		s := daemonsBegun()
		s.tell(watch.Added, aSlice("p1"))
		s.tell(watch.Modified, between)
		if decision := s.decision(); decision != "" {
			t.Errorf("%v: %s", between.Annotations, decision)
		}
	}
}

func bothDaemonsDrained(s *story) {
	s.tell(watch.Modified, takesOut(aDaemon("p1", "old", "v1", false)))
	s.tell(watch.Modified, takesOut(aDaemon("p2", "old", "v1", false)))
}

func markedRevision() *appsv1.ControllerRevision {
	revision := aRevision("new", "v2", 2)
	revision.Labels[updatingLabel] = "1000"
	return revision
}

func mislabelled() *corev1.Pod {
	pod := aDaemon("p1", "new", "v2", true)
	pod.Labels["app"] = "other"
	return pod
}

func writtenRevision() *appsv1.ControllerRevision {
	revision := aRevision("new", "v2", 2)
	revision.ManagedFields[0].Manager = "stayput"
	return revision
}

func relabelledRevision() *appsv1.ControllerRevision {
	revision := aRevision("new", "v2", 2)
	revision.Labels["app"] = "other"
	return revision
}
