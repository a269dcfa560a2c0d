package creation

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
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

func TestWithoutReplicas(t *testing.T) {
	const empty = `[{"op":"add","path":"/spec/replicas","value":0}]`
	for spec, want := range map[string]string{`{}`: empty, `{"replicas": 3}`: empty, `{"replicas": 0}`: "null"} {
		var rs apps.ReplicaSet
		if err := json.Unmarshal([]byte(`{"spec": `+spec+`}`), &rs); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(WithoutReplicas(&rs))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", spec, got, err, want)
		}
	}
}
