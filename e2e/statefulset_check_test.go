package e2e

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
)

// aStatefulSet returns a StatefulSet of 2 pods. Its status says that so many of them are of revision old and new, and all are Ready.
func aStatefulSet(version string, generation int64, current, updated int32) *appsv1.StatefulSet {
	replicas := int32(2)
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "d", Generation: generation},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, Template: template(version)},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: generation, Replicas: 2, ReadyReplicas: 2,
			CurrentRevision: "old", UpdateRevision: "new", CurrentReplicas: current, UpdatedReplicas: updated},
	}
}

// aMember returns a pod of that revision whose container runs what its spec says.
func aMember(name, revision, version string, isReady bool) *corev1.Pod {
	pod := aDaemon(name, revision, version, isReady)
	pod.OwnerReferences = ownedByStatefulSet()
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Image: version}}
	return pod
}

func aMemberRevision(name, version string, number int64) *appsv1.ControllerRevision {
	revision := aRevision(name, version, number)
	revision.OwnerReferences = ownedByStatefulSet()
	return revision
}

func ownedByStatefulSet() []metav1.OwnerReference {
	owners := ownedBy("d")
	owners[0].Kind = "StatefulSet"
	return owners
}

// membersBegun returns a completed rollout of v1, followed by an edit to v2.
func membersBegun() *story {
	s := &story{}
	s.tell(watch.Added, aMemberRevision("old", "v1", 1))
	s.tell(watch.Added, aStatefulSet("v1", 1, 0, 0))
	s.tell(watch.Added, aMember("d-0", "old", "v1", true))
	s.tell(watch.Added, aMember("d-1", "old", "v1", true))
	edited := aStatefulSet("v2", 2, 2, 0)
	edited.Status.ObservedGeneration = 1
	s.tell(watch.Modified, edited)
	s.tell(watch.Added, aMemberRevision("new", "v2", 2))
	s.tell(watch.Modified, aStatefulSet("v2", 2, 2, 0))
	return s
}

// movesMember adds events in which a pod is drained, patched, restarts, and is counted by its StatefulSet a moment later.
func (s *story) movesMember(pod string, current, updated int32) {
	s.tell(watch.Modified, takesOut(aMember(pod, "old", "v1", true)))
	behind := takesOut(aMember(pod, "new", "v2", true))
	behind.Status.ContainerStatuses[0].Image = "v1"
	s.tell(watch.Modified, behind)
	s.tell(watch.Modified, aMember(pod, "new", "v2", false))
	s.tell(watch.Modified, aMember(pod, "new", "v2", true))
	s.later += time.Second
	s.tell(watch.Modified, aStatefulSet("v2", 2, current, updated))
}

func TestJudgeAcceptsAStatefulSetUpdatedInPlace(t *testing.T) {
	s := membersBegun()
	s.movesMember("d-1", 1, 1)
	s.movesMember("d-0", 0, 2)
	if decision := s.decision(); decision != "" {
		t.Error(decision)
	}
}

// The longest time for which the status was behind the labels is recorded, since it is a second on a machine that is not busy.
func TestJudgeRecordsLag(t *testing.T) {
	s := membersBegun()
	s.movesMember("d-1", 1, 1)
	s.later += time.Minute
	s.movesMember("d-0", 0, 2)
	phases, _ := decided(s.events, []phase{{name: "edit", rules: anyChurn}})
	if phases[0].lag != time.Second {
		t.Errorf("the lag is %s", phases[0].lag)
	}
}

func TestJudgeFindsWhatIsWrongWithAStatefulSet(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*story)
		found string
	}{
		"created":              {func(s *story) { s.tell(watch.Added, aMember("d-2", "new", "v2", true)) }, "created 1 pods"},
		"deleted":              {func(s *story) { s.tell(watch.Deleted, aMember("d-1", "old", "v1", true)) }, "deleted 1 pods"},
		"image ahead":          {func(s *story) { s.tell(watch.Modified, aMember("d-1", "old", "v2", true)) }, "has images"},
		"image behind":         {func(s *story) { s.tell(watch.Modified, aMember("d-1", "new", "v1", true)) }, "has images"},
		"container behind":     {containerBehind, "is Ready and of new, but runs map[app:v1] instead of map[app:v2]"},
		"revision of nothing":  {func(s *story) { s.tell(watch.Modified, aMember("d-1", "other", "v2", true)) }, "of no revision"},
		"between, and drained": {betweenAndDrained, `has the hash "updating-in-place" of no revision`},
		"label of another":     {mislabelledMember, "its label app is"},
		"too many at a time":   {bothMembersUnready, "2 of 2 pods are unavailable, 1 may be"},
		"early success":        {func(s *story) { s.movesMember("d-1", 0, 2) }, "rolled out before pod d-0"},
		"success without pods": {successWithoutPods, "rolled out with 1 live pods of 2"},
		"invented count":       {func(s *story) { s.tell(watch.Modified, aStatefulSet("v2", 2, 2, 1)) }, "which has never been true"},
		"updated too late":     {func(s *story) { s.countsLate(1, 0) }, "the status of d differs from its pods for 11s: it counts 0 pods of new"},
		"current too late":     {func(s *story) { s.countsLate(2, 1) }, "it counts 2 pods of old, and there are 1"},
		"data rewritten":       {func(s *story) { s.tell(watch.Modified, aMemberRevision("old", "v2", 1)) }, "has other data"},
	} {
		t.Run(name, func(t *testing.T) {
			s := membersBegun()
			c.spoil(s)
			if decision := s.decision(); !strings.Contains(decision, c.found) {
				t.Errorf("%q is not in %q", c.found, decision)
			}
		})
	}
}

// TestJudgeFindsThatAMemberMoves: in a phase in which nothing may move, a pod gets another revision.
func TestJudgeFindsThatAMemberMoves(t *testing.T) {
	s := membersBegun()
	s.movesMember("d-1", 1, 1)
	if decision := s.verdictUnder(updatesOnly("clock")); !strings.Contains(decision, "although nothing may move") {
		t.Errorf("it says %q", decision)
	}
}

// TestJudgeGrantsLagWithoutStayput: any number of pods may be replaced, as where managers are killed.
func TestJudgeGrantsLagWithoutStayput(t *testing.T) {
	s := membersBegun()
	s.countsLate(2, 0)
	if decision := s.verdictUnder(anyChurn); decision != "" {
		t.Error(decision)
	}
}

// TestJudgeGrantsMaxUnavailable: two pods are not Ready at once.
func TestJudgeGrantsMaxUnavailable(t *testing.T) {
	s, two := membersBegun(), intstr.FromInt32(2)
	sts := aStatefulSet("v2", 2, 2, 0)
	sts.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &two}
	s.tell(watch.Modified, sts)
	bothMembersUnready(s)
	if decision := s.decision(); decision != "" {
		t.Error(decision)
	}
}

func betweenAndDrained(s *story) {
	s.tell(watch.Modified, takesOut(aMember("d-1", "old", "v1", true)))
	s.tell(watch.Modified, takesOut(aMember("d-1", inBetween, "v2", true)))
}

// Where managers are killed, a kubelet's report may say Ready before the old container has stopped.
func TestJudgeGrantsAKubeletsReport(t *testing.T) {
	s := membersBegun()
	s.tell(watch.Modified, takesOut(aMember("d-1", "old", "v1", true)))
	s.tell(watch.Modified, takesOut(aMember("d-1", "new", "v2", true)))
	containerBehind(s)
	if decision := s.verdictUnder(anyChurn); decision != "" {
		t.Error(decision)
	}
}

func containerBehind(s *story) {
	pod := aMember("d-1", "new", "v2", true)
	pod.Status.ContainerStatuses[0].Image = "v1"
	s.tell(watch.Modified, pod)
}

func mislabelledMember(s *story) {
	pod := aMember("d-1", "new", "v2", true)
	pod.Labels["app"] = "other"
	s.tell(watch.Modified, pod)
}

func bothMembersUnready(s *story) {
	s.later += wavering
	s.tell(watch.Modified, aMember("d-0", "old", "v1", false))
	s.tell(watch.Modified, aMember("d-1", "old", "v1", false))
}

func successWithoutPods(s *story) {
	s.movesMember("d-1", 1, 1)
	s.movesMember("d-0", 0, 2)
	s.tell(watch.Deleted, aMember("d-0", "new", "v2", true))
	s.tell(watch.Modified, aStatefulSet("v2", 2, 0, 2))
}

// countsLate adds an update of a pod that the status counts this way for more than ten seconds.
func (s *story) countsLate(current, updated int32) {
	s.tell(watch.Modified, takesOut(aMember("d-1", "old", "v1", true)))
	s.tell(watch.Modified, aMember("d-1", "new", "v2", true))
	s.tell(watch.Modified, aStatefulSet("v2", 2, current, updated))
	s.later = 11 * time.Second
	s.tell(watch.Modified, aMember("d-0", "old", "v1", true))
}
