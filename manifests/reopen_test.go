package manifests

import (
	"reflect"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
)

func TestReopeningIsHarmless(t *testing.T) {
	spec := reopening(t).Spec
	if spec.FailurePolicy == nil || *spec.FailurePolicy != admissionv1.Ignore {
		t.Error("failurePolicy is not Ignore: kubelets could not report")
	}
	for _, c := range calls(t) {
		if path(c) == "/mutate-pod" && !reflect.DeepEqual(spec.MatchConstraints.NamespaceSelector, c.NamespaceSelector) {
			t.Error("its namespaces are not those whose pods are born with a gate")
		}
	}
}

// TestReopeningReadsTheMark: CEL cannot decode JSON, so the policy looks for pieces of what the program writes.
func TestReopeningReadsTheMark(t *testing.T) {
	mark := inplace.Move{Hash: "h", Generation: 7, Containers: map[string]inplace.MovedContainer{
		"app":  {Image: "shop/app:2", ImageID: "sha256:1", ContainerID: "containerd://1"},
		"side": {Image: "shop/side:2", Unsure: true},
	}}.String()
	for piece, expression := range map[string]string{
		`"generation":7,"containers":{"`: `'"generation":' + string(object.metadata.generation) + ',"containers":{"'`,
		`"app":{"image":`:                `'"' + s.name + '":{"image":'`,
		`"unsure":true`:                  `'"unsure":true'`,
	} {
		if !strings.Contains(mark, piece) {
			t.Errorf("the mark %s does not contain %s", mark, piece)
		}
		if !strings.Contains(read(t, "reopen/policy.yaml"), expression) {
			t.Errorf("reopen/policy.yaml does not look for %s", expression)
		}
	}
	if parts := strings.Split(mark, `":{"image":`); len(parts) != 3 {
		t.Errorf("the mark %s of two containers has %d parts", mark, len(parts))
	}
}

// TestReopeningWritesWhatTheLeaderWould: all but the time. The leader writes the pod's generation, by which the policy knows whether a gate
// was closed before the patch.
func TestReopeningWritesWhatTheLeaderWould(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Generation = 7
	pod.Status.Conditions = []corev1.PodCondition{{Type: inplace.ConditionServing, Status: corev1.ConditionFalse}}
	for _, operation := range inplace.OpenGate(pod, time.Now()).Operations {
		gate, is := operation.Value.(corev1.PodCondition)
		if !is {
			continue
		}
		if gate.ObservedGeneration != pod.Generation {
			t.Errorf("the gate's observedGeneration is %d instead of %d", gate.ObservedGeneration, pod.Generation)
		}
		if want := `reason: "` + gate.Reason + `"`; !strings.Contains(read(t, "reopen/policy.yaml"), want) {
			t.Errorf("reopen/policy.yaml does not contain %s", want)
		}
		return
	}
	t.Error("opening a gate writes no condition")
}

func reopening(t *testing.T) admissionv1.MutatingAdmissionPolicy {
	t.Helper()
	var policy admissionv1.MutatingAdmissionPolicy
	document, _, _ := strings.Cut(read(t, "reopen/policy.yaml"), "\n---\n")
	decode(t, document, &policy)
	return policy
}
