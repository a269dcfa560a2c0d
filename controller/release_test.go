package controller

import (
	"context"
	"testing"
	"time"

	"github.com/stayput/stayput/controller/shutdown"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/internal/observe"
)

func TestUninstallFallsBack(t *testing.T) {
	c := newCluster(t)
	r := c.reconciler(nil)
	c.start(r)
	c.reconcile(r)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := shutdown.Uninstall(ctx, c, observe.Reader{Reader: c}); err != nil {
		t.Fatal(err)
	}
	if revisions.Updating(c.ReplicaSet("web-old")) || revisions.Updating(c.ReplicaSet("web-new")) {
		t.Error("a ReplicaSet is still marked as updating")
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
	if err := shutdown.OfProcess(t.Context(), c, c, observe.Reader{Reader: c}); err != nil {
		t.Fatal(err)
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
