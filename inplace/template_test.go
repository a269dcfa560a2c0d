package inplace

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// FuzzTemplates compares templates that users or newer API servers may come up with, read as from a list of objects.
func FuzzTemplates(f *testing.F) {
	odd := []string{
		`null`, `{}`, `[]`, `"x"`, `1e400`, `{"spec": null, "metadata": null}`, `{"metadata": {"labels": null}}`, `{"metadata": {"labels": {"a": 1}}}`,
		`{"newer": 1e400}`, `{"spec": {"newer": [1e400, -0, 1.0, 18446744073709551616]}}`, `{"spec": {"containers": null}}`,
		`{"spec": {"containers": [null, {}, {"name": "a"}, {"name": "a", "image": "b"}]}}`, `{"spec": {"containers": [{"name": null, "image": null}]}}`,
		`{"spec": {"containers": [{"name": "a", "image": "c", "resources": {"limits": {"cpu": 1e400, "memory": null}}}]}}`,
		`{"spec": {"containers": [{"name": "a", "image": "c", "resources": {"limits": {"cpu": "1e30000000"}}}]}}`,
		`{"spec": {"containers": [{"name": "a", "image": "c", "resources": {"limits": {"cpu": true}}}]}}`,
		`{"spec": {"initContainers": [{"image": "b"}], "volumes": [{"downwardAPI": {"items": [{"fieldRef": {"fieldPath": "metadata.labels"}}]}}, {}]}}`,
		`{"spec": {"affinity": {"podAffinity": {}}, "topologySpreadConstraints": [{}], "volumes": [{"projected": {"sources": [{}]}}]}}`,
		`{"spec": {"hostNetwork": "yes"}}`, baseTemplate,
	}
	for _, a := range odd {
		for _, b := range odd {
			f.Add(a, b)
		}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}}
	f.Fuzz(func(t *testing.T, rawA, rawB string) {
		var a, b Template
		if json.Unmarshal([]byte(rawA), &a) != nil || json.Unmarshal([]byte(rawB), &b) != nil {
			return // no JSON
		}
		if SameTemplate(a, b) != SameTemplate(b, a) {
			t.Error("one is the same as the other, but not the other as the one")
		}
		for _, same := range []Template{a, b} {
			if change := Compare(same, same, Rules{}); !change.None() {
				t.Errorf("differs from itself: %s", change)
			}
		}
		change := Compare(a, b, Rules{})
		if change.None() != SameTemplate(a, b) {
			t.Errorf("%s, and the same: %t", change, SameTemplate(a, b))
		}
		if len(change.Reasons) > mostReasons {
			t.Errorf("%d reasons", len(change.Reasons))
		}
		change.PodOperations(pod)
		rollout := Rollout{Deployment: &Deployment{Spec: DeploymentSpec{Template: b}}, Mode: ModeInPlace}
		newReplicaSet(rollout.Deployment, rollout.ReplicaSets)
		_ = fmt.Sprint(rollout.targetHash(), change)
	})
}
