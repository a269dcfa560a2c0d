package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/statefulsets"
)

// situation is a StatefulSet with its pods, and what Kubernetes' own controller did: see e2e/conformance/controllers, which wrote it.
type situation struct {
	Policy   appsv1.PodManagementPolicyType
	Start    int32
	Replicas int32
	Strategy appsv1.StatefulSetUpdateStrategy
	Current  string
	Counted  int32
	// Pods are such as "5 old available": ordinal, revision and state.
	Pods, Creates, Deletes []string
	Status                 string
}

// situations returns those of that file of testdata.
func situations(t *testing.T, name string) []situation {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var all []situation
	for line := range bytes.Lines(text) {
		var one situation
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// objects returns the StatefulSet and its pods.
func (s situation) objects() (*apps.StatefulSet, []*corev1.Pod) {
	set := &apps.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	set.Spec.Replicas, set.Spec.Ordinals = &s.Replicas, &appsv1.StatefulSetOrdinals{Start: s.Start}
	set.Spec.PodManagementPolicy, set.Spec.UpdateStrategy, set.Spec.MinReadySeconds = s.Policy, s.Strategy, 600
	set.Status.CurrentRevision, set.Status.CurrentReplicas = s.Current, s.Counted
	var pods []*corev1.Pod
	for _, of := range s.Pods {
		words := strings.Fields(of)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-" + words[0]}}
		pod.Labels = map[string]string{inplace.LabelRevisionHash: words[1]}
		pod.Status.Phase = corev1.PodRunning
		isReady, since := corev1.ConditionTrue, time.Hour
		switch words[2] {
		case "ready":
			since = 0
		case "unready":
			isReady = corev1.ConditionFalse
		case "pending":
			pod.Status.Phase = corev1.PodPending
		case "failed":
			pod.Status.Phase = corev1.PodFailed
		case "succeeded":
			pod.Status.Phase = corev1.PodSucceeded
		case "terminating":
			pod.DeletionTimestamp = &metav1.Time{Time: fixture.Start}
		}
		if pod.Status.Phase == corev1.PodRunning {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: isReady,
				LastTransitionTime: metav1.NewTime(fixture.Start.Add(-since))}}
		}
		pods = append(pods, pod)
	}
	return set, pods
}

// TestKeptIsWhatTheControllerKeeps compares the product's rules with Kubernetes' own controller: it deletes no pod that they keep, and
// creates with the old revision only those.
func TestKeptIsWhatTheControllerKeeps(t *testing.T) {
	for i, s := range situations(t, "statefulsets.jsonl") {
		set, pods := s.objects()
		kind := statefulsets.Of(set)
		for _, pod := range pods {
			pod.Spec.NodeName = "n1"
			_, ordinal, _ := strings.Cut(pod.Name, "-")
			if kind.Kept(pod) && kind.Housekeeping(pod) == "" && slices.Contains(s.Deletes, ordinal) {
				t.Errorf("line %d: the controller deletes %s", i+1, pod.Name)
			}
		}
		for _, created := range s.Creates {
			ordinal, revision, _ := strings.Cut(created, " ")
			kept := kind.Kept(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-" + ordinal}})
			if s.Strategy.RollingUpdate != nil && s.Current == "old" && kept != (revision == "old") {
				t.Errorf("line %d: db-%s is kept %t, the controller creates it as %s", i+1, ordinal, kept, revision)
			}
		}
	}
}

// TestModelOfTheStatefulSetController compares the model with Kubernetes' own controller.
func TestModelOfTheStatefulSetController(t *testing.T) {
	for file, several := range map[string]bool{"statefulsets.jsonl": false, "statefulsets-maxunavailable.jsonl": true} {
		all := situations(t, file)
		for i, s := range all {
			model := statefulSetController{update: "new", current: s.Current, several: several, now: fixture.Start}
			model.set, model.pods = s.objects()
			if s.Current == "gone" {
				model.current = "new" // getStatefulSetRevisions
			}
			var creates, deletes []string
			model.create = func(ordinal int, revision string) { creates = append(creates, fmt.Sprint(ordinal, " ", revision)) }
			model.remove = func(pod *corev1.Pod, _ bool) bool {
				deletes = append(deletes, fmt.Sprint(model.ordinal(pod)))
				return false
			}
			status := model.run()
			slices.Sort(creates)
			slices.Sort(deletes)
			said := fmt.Sprintf("replicas %d, ready %d, available %d, current %d, updated %d, %s is current", status.Replicas,
				status.ReadyReplicas, status.AvailableReplicas, status.CurrentReplicas, status.UpdatedReplicas, status.CurrentRevision)
			if !slices.Equal(creates, s.Creates) || !slices.Equal(deletes, s.Deletes) || said != s.Status {
				t.Fatalf("line %d of %s: the model creates %v, deletes %v: %s; the controller creates %v, deletes %v: %s", i+1, file,
					creates, deletes, said, s.Creates, s.Deletes, s.Status)
			}
		}
		if len(all) < 500 {
			t.Errorf("%s has %d situations", file, len(all))
		}
	}
}
