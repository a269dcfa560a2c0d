package controller

import (
	"context"
	"testing"
	"time"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/shutdown"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/observe"
)

func TestUninstallFallsBack(t *testing.T) {
	c := newCluster(t)
	r := c.reconciler(nil)
	c.start(r)
	c.reconcile(r)
	created := c.Created(time.Now())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := shutdown.Uninstall(ctx, c, observe.Reader{Reader: c}); err != nil {
		t.Fatal(err)
	}
	if revisions.Updating(c.ReplicaSet("web-old")) || revisions.Updating(c.ReplicaSet("web-new")) {
		t.Error("a ReplicaSet is still marked as updating")
	}
	if !apps.IsTrue(c.Pod(created), inplace.ConditionServing) {
		t.Error("a new pod's gate is not open")
	}
	for _, pod := range c.Snapshot().Read.Seen.Pods {
		if !apps.IsTrue(pod, inplace.ConditionServing) {
			t.Errorf("the gate of %s is not open", pod.Name)
		}
	}
}

func TestUninstallRetriesAfterConflicts(t *testing.T) {
	c := newCluster(t)
	conflicts := 2
	c.Refuse = func(object client.Object, _ string) error {
		if conflicts--; conflicts < 0 {
			return nil
		}
		return apierrors.NewConflict(schema.GroupResource{Resource: "replicasets"}, object.GetName(), nil)
	}
	if err := shutdown.Uninstall(t.Context(), c, observe.Reader{Reader: c}); err != nil {
		t.Fatal(err)
	}
	if !revisions.Nudged(c.ReplicaSet("web-new")) {
		t.Error("the Deployment controller is not nudged after the conflicts")
	}
}

func TestProcessShutdown(t *testing.T) {
	c := newCluster(t)
	created := types.NamespacedName{Namespace: fixture.Web.Namespace, Name: "new"}
	if err := c.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: created.Namespace, Name: created.Name},
		Spec:       corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := shutdown.OfProcess(t.Context(), c, observe.Reader{Reader: c}); err != nil {
		t.Fatal(err)
	}
	if !apps.IsTrue(c.Pod(created), inplace.ConditionServing) {
		t.Error("the gate of a new pod is not open")
	}
	if c.ReplicaSet("web-new").Labels[inplace.LabelRenewed] == "" {
		t.Error("the native controller got no nudge for the update in progress")
	}
	r := c.reconciler(nil)
	c.reconcile(r)
	c.reconcile(r)
	if c.ReplicaSet("web-new").Labels[inplace.LabelRenewed] != "" {
		t.Error("the next leader did not remove the label")
	}
}
