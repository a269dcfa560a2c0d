package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
)

// aPrePullPod returns a pre-pull pod of Deployment d without faults.
func aPrePullPod(name string) *corev1.Pod {
	pod := aPod(name, "d", "stayput", false)
	pod.Labels = map[string]string{prePullLabel: "d"}
	pod.OwnerReferences[0].Kind = "Deployment"
	return pod
}

// pulledFirst returns an edit to v2 for which a pre-pull pod was created and deleted.
func pulledFirst(prePullPod *corev1.Pod) *story {
	s := begun()
	s.tell(watch.Added, prePullPod)
	s.tell(watch.Deleted, prePullPod)
	return s
}

func TestJudgeDoesNotCountPrePullPods(t *testing.T) {
	s := pulledFirst(aPrePullPod("pull"))
	s.moves("p1")
	s.moves("p2")
	if decision := s.decision(); decision != "" {
		t.Error(decision)
	}
}

func TestJudgeFindsWhatIsWrongWithAPrePullPod(t *testing.T) {
	for found, spoil := range map[string]func(*corev1.Pod){
		"has no owner": func(pod *corev1.Pod) { pod.OwnerReferences = nil },
		"is controlled by ReplicaSet new": func(pod *corev1.Pod) {
			pod.OwnerReferences = ownedBy("new")
			pod.OwnerReferences[0].Kind = "ReplicaSet"
		},
		"is controlled by DaemonSet d": func(pod *corev1.Pod) { pod.OwnerReferences = ownedByDaemonSet() },
		"runs registry/app:v2":         func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "registry/app:v2" },
		"is selected by d":             func(pod *corev1.Pod) { pod.Labels["app"] = "d" },
	} {
		t.Run(found, func(t *testing.T) {
			prePullPod := aPrePullPod("pull")
			spoil(prePullPod)
			if decision := pulledFirst(prePullPod).decision(); !strings.Contains(decision, found) {
				t.Errorf("%q is not in %q", found, decision)
			}
		})
	}
}

func TestJudgeFindsAPrePullPodThatOutlivesItsUpdate(t *testing.T) {
	s := begun()
	s.tell(watch.Added, aPrePullPod("pull"))
	s.moves("p1")
	if decision := s.decision(); decision != "" {
		t.Errorf("before the update is over: %s", decision)
	}
	s.moves("p2")
	s.tell(watch.Modified, aDeployment("v2", 2, 2))
	for set, replicas := range map[string]int32{"old": 0, "new": 2} {
		now := aSet(set, map[string]string{"old": "v1", "new": "v2"}[set])
		now.Spec.Replicas, now.Status.Replicas = &replicas, replicas
		s.tell(watch.Modified, now)
	}
	if decision, found := s.decision(), "the update of d is over, but pre-pull pod pull is still there"; decision != found {
		t.Errorf("got %q instead of %q", decision, found)
	}
}

// withSurgePod returns begun with maxSurge 1 and a surge pod that is Ready.
func withSurgePod() *story {
	s := begun()
	one, d := intstr.FromInt32(1), aDeployment("v2", 2, 0)
	d.Spec.Strategy.RollingUpdate.MaxSurge = &one
	s.tell(watch.Modified, d)
	s.tell(watch.Added, aPod("p3", "new", "v2", false))
	s.tell(watch.Modified, aPod("p3", "new", "v2", true))
	return s
}

func TestJudgeAcceptsASurgePod(t *testing.T) {
	s := withSurgePod()
	s.moves("p1")
	s.moves("p2")
	s.tell(watch.Deleted, aPod("p3", "new", "v2", true))
	if decision := s.verdictUnder(surge(1)); decision != "" {
		t.Error(decision)
	}
}

func TestJudgeFindsWhatIsWrongWithSurgePods(t *testing.T) {
	for found, spoil := range map[string]func(*story){
		"1 of 2 pods are unavailable, 0 may be": bothDrained,
		"is one of 4 pods, 3 may be there":      func(s *story) { s.tell(watch.Added, aPod("p4", "new", "v2", false)) },
		"deleted 0 pods, not 1":                 func(*story) {},
	} {
		s := withSurgePod()
		spoil(s)
		if decision := s.verdictUnder(surge(1)); !strings.Contains(decision, found) {
			t.Errorf("%q is not in %q", found, decision)
		}
	}
}

func TestJudgeExemptsWhatMayHaveNoSurgePod(t *testing.T) {
	if rules := surge(1); rules.allAvailable(&metav1.ObjectMeta{Annotations: map[string]string{surgeSetting: "never"}}) {
		t.Error("a workload that may not surge is not exempt")
	}
}
