package generate

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Failed attempts are repeated after these times, which double from the first to the last.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 10 * time.Second
	// patience bounds one attempt.
	patience = 30 * time.Second
)

// AddTo has the manager call the generator when the Secret or a webhook configuration changes, in every replica. The watches only say that
// there is something to do.
func (g *Generator) AddTo(m manager.Manager) error {
	g.live, g.writer = m.GetAPIReader(), m.GetClient()
	c, err := controller.New("certificates", m, controller.Options{
		Reconciler:            g,
		NeedLeaderElection:    ptr.To(false),
		ReconciliationTimeout: patience,
		RateLimiter:           workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	})
	if err != nil {
		return err
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = g.namespace, Secret
	for _, object := range append(configurations(), secret) {
		if err := g.watch(m, c, object); err != nil {
			return err
		}
	}
	return nil
}

// watch watches one object, by its name: the right to it is limited to that.
func (g *Generator) watch(m manager.Manager, c controller.Controller, object client.Object) error {
	only := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", object.GetName())}
	if namespace := object.GetNamespace(); namespace != "" {
		only.Namespaces = map[string]cache.Config{namespace: {}}
	}
	informers, err := cache.New(m.GetConfig(), cache.Options{
		HTTPClient: m.GetHTTPClient(), Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{object: only}})
	if err != nil {
		return err
	}
	toOne := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} })
	if err := c.Watch(source.Kind(informers, object, toOne)); err != nil {
		return err
	}
	return m.Add(everywhere{informers})
}

// everywhere is a cache that runs in every replica.
type everywhere struct{ cache.Cache }

// NeedLeaderElection keeps the cache from waiting until this replica leads.
func (everywhere) NeedLeaderElection() bool { return false }
