package controller

import (
	"testing"

	"github.com/stayput/stayput/controller/internal/fixture"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/observe"
)

func TestRouter(t *testing.T) {
	c := newCluster(t)
	route := router{observe.Reader{Reader: c}, kinds.Deployments}
	rollout := c.Snapshot().Seen
	source, pod := c.ReplicaSet("web-old"), rollout.Pods[0]
	marked := c.ReplicaSet("web-old")
	marked.Labels[inplace.LabelSettling] = "1"
	shut := pod.DeepCopy()
	for i := range shut.Status.Conditions {
		shut.Status.Conditions[i].Status = corev1.ConditionFalse
	}
	orphan := pod.DeepCopy()
	orphan.OwnerReferences[0].UID = "another"

	check := func(what string, got []reconcile.Request, want bool) {
		t.Helper()
		if len(got) > 1 || (len(got) == 1) != want || want && got[0] != fixture.Request {
			t.Errorf("%s: %v, want it to wake %s: %t", what, got, fixture.Web, want)
		}
	}
	for _, labelled := range []bool{true, false} {
		if !labelled {
			c.unlabel()
		}
		check("Deployment", route.workload(t.Context(), rollout.Deployment), labelled)
		check("ReplicaSet", route.revision(t.Context(), source), labelled)
		check("marked ReplicaSet", route.revision(t.Context(), marked), true)
		check("pod", route.pod(t.Context(), pod), labelled)
		check("closed pod", route.pod(t.Context(), shut), true)
		check("pod of another ReplicaSet", route.pod(t.Context(), orphan), false)
		check("namespace", route.namespace(t.Context(), c.namespace()), true)
	}
}

func (c *cluster) namespace() *corev1.Namespace {
	c.T.Helper()
	namespace := &corev1.Namespace{}
	if err := c.Get(c.T.Context(), client.ObjectKey{Name: fixture.Web.Namespace}, namespace); err != nil {
		c.T.Fatal(err)
	}
	return namespace
}

func (c *cluster) unlabel() {
	c.T.Helper()
	namespace := c.namespace()
	namespace.Labels = nil
	if err := c.Update(c.T.Context(), namespace); err != nil {
		c.T.Fatal(err)
	}
}

func TestRelabelled(t *testing.T) {
	namespace := func(labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	labels := func(update, drain string) map[string]string {
		return map[string]string{inplace.LabelUpdate: update, inplace.LabelDrain: drain}
	}
	inPlace, only := map[string]string{inplace.LabelUpdate: "in-place"}, map[string]string{inplace.LabelUpdate: "in-place-only"}
	for _, test := range []struct {
		before, after map[string]string
		passes        bool
	}{
		{nil, inPlace, true},
		{inPlace, nil, true},
		{inPlace, only, true},
		{inPlace, inPlace, false},
		{nil, nil, false},
		{labels("in-place", "10m"), labels("in-place", "1s"), true},
		{inPlace, labels("in-place", "1s"), true},
		{labels("in-place", "2000ms"), labels("in-place", "2s"), false},
		{map[string]string{inplace.LabelBorrow: "true"}, map[string]string{inplace.LabelBorrow: "false"}, true},
		{map[string]string{"team": "a"}, map[string]string{"team": "b"}, false},
	} {
		update := event.UpdateEvent{ObjectOld: namespace(test.before), ObjectNew: namespace(test.after)}
		if passes := relabelled.Update(update); passes != test.passes {
			t.Errorf("%v to %v passes %t, want %t", test.before, test.after, passes, test.passes)
		}
		if passes := relabelled.Create(event.CreateEvent{Object: namespace(test.after)}); passes != (test.after[inplace.LabelUpdate] != "") {
			t.Errorf("created with %v passes %t", test.after, passes)
		}
	}
}
