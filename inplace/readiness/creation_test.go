package readiness

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
)

func TestAddGate(t *testing.T) {
	other, serving := corev1.PodReadinessGate{ConditionType: "other"}, corev1.PodReadinessGate{ConditionType: inplace.ConditionServing}
	for want, gates := range map[string][]corev1.PodReadinessGate{
		`[{"op":"add","path":"/spec/readinessGates","value":[{"conditionType":"stayput.dev/serving"}]}]`: nil,
		`[{"op":"add","path":"/spec/readinessGates/-","value":{"conditionType":"stayput.dev/serving"}}]`: {other},
		"null": {other, serving},
	} {
		got, err := json.Marshal(AddGate(&corev1.Pod{Spec: corev1.PodSpec{ReadinessGates: gates}}))
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}
