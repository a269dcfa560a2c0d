package rights

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Watch has every manager, whether it leads or not, watch the objects. If Stayput is being removed, the manager ends:
// end is called with the cause. Otherwise a finalizer that another client took off is put on again.
func (r Rights) Watch(m manager.Manager, end context.CancelCauseFunc) error {
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}} // for all objects together
	})
	watching := builder.ControllerManagedBy(m).Named("rights").WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)})
	for _, object := range r.Objects() {
		watching = watching.Watches(object, one)
	}
	return watching.Complete(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, r.look(ctx, end)
	}))
}

func (r Rights) look(ctx context.Context, end context.CancelCauseFunc) error {
	what, err := r.Removal(ctx)
	if err != nil {
		return err
	}
	if what != "" {
		end(RemovalError(what))
		return nil
	}
	return r.Keep(ctx)
}

// RemovalError is why a manager ends although it was not told to.
type RemovalError string

// Error says by what Stayput is being removed.
func (e RemovalError) Error() string {
	return fmt.Sprintf("Stayput is being removed: %s", string(e))
}
