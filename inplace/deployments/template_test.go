package deployments_test

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/internal/sample"
)

// FuzzTemplates compares templates that users or newer API servers may write, read as from a list of objects.
func FuzzTemplates(f *testing.F) {
	odd := []string{
		`null`, `{}`, `[]`, `"x"`, `1e400`, `{"spec": null, "metadata": null}`, `{"metadata": {"labels": null}}`,
		`{"metadata": {"labels": {"a": 1}}}`,
		`{"newer": 1e400}`, `{"spec": {"newer": [1e400, -0, 1.0, 18446744073709551616]}}`, `{"spec": {"containers": null}}`,
		`{"spec": {"containers": [null, {}, {"name": "a"}, {"name": "a", "image": "b"}]}}`,
		`{"spec": {"containers": [{"name": null, "image": null}]}}`,
		`{"spec": {"containers": [{"name": "a", "image": "c", "resources": {"limits": {"cpu": 1e400, "memory": null}}}]}}`,
		`{"spec": {"containers": [{"name": "a", "image": "c", "resources": {"limits": {"cpu": "1e30000000"}}}]}}`,
		`{"spec": {"containers": [{"name": "a", "image": "c", "resources": {"limits": {"cpu": true}}}]}}`,
		`{"spec": {"initContainers": [{"image": "b"}], ` +
			`"volumes": [{"downwardAPI": {"items": [{"fieldRef": {"fieldPath": "metadata.labels"}}]}}, {}]}}`,
		`{"spec": {"affinity": {"podAffinity": {}}, "topologySpreadConstraints": [{}], "volumes": [{"projected": {"sources": [{}]}}]}}`,
		`{"spec": {"hostNetwork": "yes"}}`, sample.Template,
	}
	for _, a := range odd {
		for _, b := range odd {
			f.Add(a, b)
		}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}}
	f.Fuzz(func(t *testing.T, rawA, rawB string) {
		var a, b apps.Template
		if json.Unmarshal([]byte(rawA), &a) != nil || json.Unmarshal([]byte(rawB), &b) != nil {
			return // not JSON
		}
		if apps.SameTemplate(a, b) != apps.SameTemplate(b, a) {
			t.Error("one is the same as the other, but not the other as the one")
		}
		for _, same := range []apps.Template{a, b} {
			if change := edit.Compare(same, same, inplace.Rules{}); !change.None() {
				t.Errorf("differs from itself: %s", change)
			}
		}
		change := edit.Compare(a, b, inplace.Rules{})
		if change.None() != apps.SameTemplate(a, b) {
			t.Errorf("%s, and the same: %t", change, apps.SameTemplate(a, b))
		}
		if len(change.Reasons) > inplace.MostReasons {
			t.Errorf("%d reasons", len(change.Reasons))
		}
		change.PodOperations(pod)
		rollout := deployments.Rollout{Deployment: &apps.Deployment{Spec: apps.DeploymentSpec{Template: b}},
			Seen: engine.Snapshot{Mode: inplace.ModeInPlace}}
		deployments.NewReplicaSet(rollout.Deployment, rollout.ReplicaSets)
		_ = fmt.Sprint(rollout.TemplateHash(), change)
	})
}
