package patches_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	apiserver "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/internal/templates"
)

// TestGuardedButStatus applies patches to objects that have changed since they were read, with the library that the API server uses.
func TestGuardedButStatus(t *testing.T) {
	read := func() *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: 3, ResourceVersion: "7", Labels: map[string]string{"app": "web", "hash": "x"},
				Annotations:     map[string]string{"note": "<a&b>"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d", Controller: new(true)}}},
		}
	}
	bare := func() *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: 3}}
	}
	for name, c := range map[string]struct {
		read    func() *appsv1.ReplicaSet
		becomes func(*appsv1.ReplicaSet)
		applies bool
	}{
		"nothing":                        {read, func(*appsv1.ReplicaSet) {}, true},
		"another status":                 {read, func(rs *appsv1.ReplicaSet) { rs.ResourceVersion, rs.Status.Replicas = "8", 4 }, true},
		"another annotation":             {read, func(rs *appsv1.ReplicaSet) { rs.Annotations["more"] = "1" }, true},
		"another spec":                   {read, func(rs *appsv1.ReplicaSet) { rs.Generation = 4 }, false},
		"another object":                 {read, func(rs *appsv1.ReplicaSet) { rs.UID = "v" }, false},
		"one more label":                 {read, func(rs *appsv1.ReplicaSet) { rs.Labels["more"] = "1" }, false},
		"another label":                  {read, func(rs *appsv1.ReplicaSet) { rs.Labels["hash"] = "y" }, false},
		"no labels":                      {read, func(rs *appsv1.ReplicaSet) { rs.Labels = nil }, false},
		"no owner":                       {read, func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = nil }, false},
		"another owner":                  {read, func(rs *appsv1.ReplicaSet) { rs.OwnerReferences[0].UID = "e" }, false},
		"a bare one, nothing":            {bare, func(*appsv1.ReplicaSet) {}, true},
		"a bare one, another status":     {bare, func(rs *appsv1.ReplicaSet) { rs.ResourceVersion, rs.Status.Replicas = "8", 4 }, true},
		"a bare one, the first label":    {bare, func(rs *appsv1.ReplicaSet) { rs.Labels = map[string]string{"app": "web"} }, false},
		"a bare one, the first owner":    {bare, func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = []metav1.OwnerReference{{UID: "d"}} }, false},
		"a bare one, another annotation": {bare, func(rs *appsv1.ReplicaSet) { rs.Annotations = map[string]string{"more": "1"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			stored := c.read()
			c.becomes(stored)
			after, err := apply(t, stored, patches.GuardedButStatus(c.read(), jsonpatch.NewOperation("add", "/spec/replicas", 5)))
			if applies := err == nil; applies != c.applies {
				t.Fatalf("applies: %t (%v), want %t", applies, err, c.applies)
			}
			if c.applies && (*after.Spec.Replicas != 5 || after.Status.Replicas != stored.Status.Replicas) {
				t.Errorf("after the patch: %+v", after)
			}
		})
	}
}

func apply(t *testing.T, stored *appsv1.ReplicaSet, operations []jsonpatch.Operation) (*appsv1.ReplicaSet, error) {
	t.Helper()
	patch, err := apiserver.DecodePatch([]byte(templates.Text(operations)))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := patch.Apply([]byte(templates.Text(stored)))
	if err != nil {
		return nil, err
	}
	after := &appsv1.ReplicaSet{}
	return after, json.Unmarshal(changed, after)
}

func TestSetConditions(t *testing.T) {
	ready, not := corev1.PodCondition{Type: corev1.PodReady, Status: "True"}, corev1.PodCondition{Type: corev1.PodReady, Status: "False"}
	other := corev1.PodCondition{Type: "Other", Status: "True"}
	operation := func(op, path, value string) string {
		return fmt.Sprintf(`[{"op":%q,"path":%q,"value":%s}]`, op, path, value)
	}
	for name, test := range map[string]struct {
		have, want []corev1.PodCondition
		operations string
	}{
		"none":        {nil, nil, "null"},
		"the same":    {[]corev1.PodCondition{ready, other}, []corev1.PodCondition{ready, other}, "null"},
		"the first":   {nil, []corev1.PodCondition{ready}, operation("add", "/status/conditions", "["+text(ready)+"]")},
		"another one": {[]corev1.PodCondition{ready}, []corev1.PodCondition{not}, operation("replace", "/status/conditions/0", text(not))},
		"one more": {[]corev1.PodCondition{ready}, []corev1.PodCondition{ready, other},
			operation("add", "/status/conditions/-", text(other))},
		"none is gone": {[]corev1.PodCondition{ready}, nil, "null"},
	} {
		if got := text(patches.SetConditions(test.have, test.want)); got != test.operations {
			t.Errorf("%s: %s, want %s", name, got, test.operations)
		}
	}
}

func text(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
