package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// noted notes what becomes of targets, and whether the pod had the annotation then.
type noted struct {
	client.Client
	pod   client.ObjectKey
	notes []string
	fails bool
}

func (n *noted) note(ctx context.Context, what string) error {
	pod := &corev1.Pod{}
	if err := n.Get(ctx, n.pod, pod); client.IgnoreNotFound(err) != nil {
		return err
	}
	if _, held := pod.Annotations[hook]; held {
		what += ", held"
	}
	n.notes = append(n.notes, what)
	if n.fails {
		return errors.New("the load balancer does not answer")
	}
	return nil
}

func (n *noted) register(ctx context.Context, _, _ string) error { return n.note(ctx, "registered") }
func (n *noted) deregister(ctx context.Context, _ string) error  { return n.note(ctx, "deregistered") }

func TestReconcile(t *testing.T) {
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	out := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "UpdatingInPlace"}
	for name, test := range map[string]struct {
		held, gone bool
		conditions []corev1.PodCondition
		fails      bool
		notes      []string
		after      bool // whether it has the annotation in the end
	}{
		"not Ready":              {},
		"Ready":                  {conditions: []corev1.PodCondition{ready}, notes: []string{"registered, held"}, after: true},
		"Ready again":            {held: true, conditions: []corev1.PodCondition{ready}, notes: []string{"registered, held", "registered, held"}, after: true},
		"out of service":         {held: true, conditions: []corev1.PodCondition{out}, notes: []string{"deregistered, held"}},
		"out of service, unheld": {conditions: []corev1.PodCondition{out}},
		"not Ready any more":     {held: true, notes: []string{"deregistered, held"}},
		"deregistering fails":    {held: true, conditions: []corev1.PodCondition{out}, fails: true, notes: []string{"deregistered, held", "deregistered, held"}, after: true},
		"gone":                   {gone: true, notes: []string{"deregistered", "deregistered"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "u"},
				Status: corev1.PodStatus{PodIP: "10.0.0.1", Conditions: test.conditions}}
			if test.held {
				pod.Annotations = map[string]string{hook: ""}
			}
			builder := fake.NewClientBuilder()
			if !test.gone {
				builder = builder.WithObjects(pod)
			}
			n := &noted{Client: builder.Build(), pod: client.ObjectKeyFromObject(pod), fails: test.fails}
			r := &registrar{Client: n.Client, targets: n}
			for range 2 {
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: n.pod}); (err != nil) != test.fails {
					t.Fatal(err)
				}
			}
			if !slices.Equal(n.notes, test.notes) {
				t.Errorf("it did %q, want %q", n.notes, test.notes)
			}
			_ = n.Get(t.Context(), n.pod, pod)
			if _, held := pod.Annotations[hook]; held != test.after && !test.gone {
				t.Errorf("in the end it has the annotation: %t", held)
			}
		})
	}
}

func TestConfigMapTargets(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "targets"}}).Build()
	all := configMapTargets{c, "shop", "targets"}
	for _, pod := range []string{"a", "b", "b"} {
		if err := all.register(t.Context(), pod, "10.0.0."+pod); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := all.deregister(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	left := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "targets"}, left); err != nil {
		t.Fatal(err)
	}
	if len(left.Data) != 1 || left.Data["b"] != "10.0.0.b" {
		t.Errorf("targets are %v", left.Data)
	}
}
