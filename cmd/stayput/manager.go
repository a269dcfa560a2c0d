package main

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/stayput/stayput/certs"
	"github.com/stayput/stayput/controller"
	"github.com/stayput/stayput/controller/shutdown"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/internal/observe"
	"github.com/stayput/stayput/internal/port"
	"github.com/stayput/stayput/internal/tracing"
	"github.com/stayput/stayput/internal/version"
	"github.com/stayput/stayput/internal/watchdog"
	admission "github.com/stayput/stayput/webhook"
)

// manage serves the webhooks and takes part in leader election. The leader carries out the updates.
func manage(ctx context.Context, o options) error {
	if err := announce(); err != nil {
		return err
	}
	certificate, err := certs.Watch(o.certificates)
	if err != nil {
		return err
	}
	server, err := webhookServer(o, certificate)
	if err != nil {
		return err
	}
	identity, err := identity()
	if err != nil {
		return err
	}
	m, keep, err := newManager(ctx, o, server, identity)
	if err != nil {
		return err
	}
	if err := m.Add(certificate); err != nil {
		return err
	}
	if err := admission.CountByNamespace(ctx, m.GetCache(), observe.Excluded(o.excludedNamespaces).Manages); err != nil {
		return err
	}
	tracer, stop, err := tracing.Start(ctx, version.Get().Version, m.GetLogger().WithName("tracing"))
	if err != nil {
		return err
	}
	leading := observe.Leadership{Reader: m.GetCache(), Namespace: o.namespace, Identity: identity}
	cached, err := addComponents(ctx, m, keep, o, leading, certificate, tracer)
	if err != nil {
		return err
	}
	err = m.Start(ctx)
	// From here on the webhooks do not answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownPatience)
	defer cancel()
	defer stop(ctx)
	return errors.Join(err, shutdown.OfProcess(ctx, m.GetClient(), m.GetAPIReader(), cached))
}

// shutdownPatience bounds what a process does after its webhooks no longer answer.
const shutdownPatience = 8 * time.Second

// webhookServer returns a server that shows the certificate. With a client CA, it also requires a client certificate of that CA.
func webhookServer(o options, certificate certs.Source) (webhook.Server, error) {
	options := webhook.Options{Port: o.webhookPort, TLSOpts: []func(*tls.Config){certs.TLS(certificate)}}
	if o.clientCA != "" {
		callers, err := certs.Callers(o.clientCA)
		if err != nil {
			return nil, err
		}
		options.TLSOpts = append(options.TLSOpts, callers)
	}
	return port.New(options), nil
}

// identity returns the holder identity that this process writes into the Lease.
func identity() (string, error) {
	host, err := os.Hostname()
	return host + "_" + string(uuid.NewUUID()), err
}

// newManager returns a manager whose times of the election are controller-runtime's defaults and those of Kubernetes' own components
// (component-base/config/v1alpha1): a slow API server must not cost the Lease, which the leader tries to renew for 10 s. A new leader takes
// over before the holds of the old one expire (inplace.LeaderPatience): 15 s after it saw the last renewal, which it looks for every 2 to
// 4.4 s (JitterFactor of client-go/tools/leaderelection).
func newManager(
	ctx context.Context, o options, server webhook.Server, identity string,
) (manager.Manager, *observe.CacheForm, error) {
	config, err := connection()
	if err != nil {
		return nil, nil, err
	}
	direct, err := clientOver(config)
	if err != nil {
		return nil, nil, err
	}
	keep, err := observe.NewCacheForm(ctx, o.reader(direct))
	if err != nil {
		return nil, nil, err
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, o.namespace, inplace.Lease,
		resourcelock.ResourceLockConfig{Identity: identity}, config, 10*time.Second)
	if err != nil {
		return nil, nil, err
	}
	m, err := ctrl.NewManager(config, manager.Options{
		Scheme:                 direct.Scheme(),
		Cache:                  cacheOptions(o.namespace, keep),
		Metrics:                metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress: o.healthAddress,
		PprofBindAddress:       o.pprofAddress,
		WebhookServer:          server,
		LeaderElection:         true,
		// The lock is made here so that its identity is known: observe.Leadership compares it.
		LeaderElectionResourceLockInterface: lock,
		// With a lock of its own, controller-runtime uses the ID only as the name in leader_election_master_status.
		LeaderElectionID: inplace.Lease,
		// This is safe, because the process ends as soon as the manager does.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(10 * time.Second),
	})
	return m, keep, err
}

// addComponents adds controllers, webhooks and checks to the manager, and returns what reads its cache. Every replica fills its caches.
func addComponents(
	ctx context.Context, m manager.Manager, keep *observe.CacheForm, o options, leading observe.Leadership,
	certificate certs.Source, tracer *tracing.Tracer,
) (observe.Reader, error) {
	cached, live := o.reader(m.GetCache()), o.reader(m.GetAPIReader())
	filled, err := watch(ctx, m.GetCache(), o.namespace, keep)
	if err != nil {
		return cached, err
	}
	if err := observe.Index(ctx, m.GetFieldIndexer()); err != nil {
		return cached, err
	}
	stores, err := observe.StoresOf(ctx, m.GetCache())
	if err != nil {
		return cached, err
	}
	hold := observe.Hold{Reader: m.GetCache(), Namespace: o.namespace}
	cached.Form, live.Form = keep, keep
	cached.Stores, cached.Hold, live.Hold = stores, hold, hold
	if cached.Waiter, err = waitImage(ctx, m.GetAPIReader(), o.namespace); err != nil {
		return cached, err
	}
	dog := &watchdog.Watchdog{}
	if err := m.Add(dog); err != nil {
		return cached, err
	}
	if err := controller.Setup(m, cached, leading, dog, tracer, o.limits); err != nil {
		return cached, err
	}
	admission.Register(m.GetWebhookServer(), admission.Handlers{
		Sources:  admission.Sources{Cached: cached, Live: live, Hold: hold, Log: m.GetLogger().WithName("admission")},
		Watchdog: dog,
		Tracer:   tracer,
	})
	// The names say what is right. A failing answer has only the names, which internal/check reads.
	return cached, errors.Join(
		m.AddHealthzCheck("work-ends", dog.Check),
		m.AddReadyzCheck("certificate-is-valid", certs.Loaded(certificate)),
		m.AddReadyzCheck("webhook-port-answers", m.GetWebhookServer().StartedChecker()),
		m.AddReadyzCheck("caches-are-filled", filled),
	)
}

// reader returns a reader of what package inplace needs for its decisions, with the rules of the command line.
func (o options) reader(from client.Reader) observe.Reader {
	return observe.Reader{
		Reader:             from,
		Rules:              inplace.Rules{Annotations: o.inPlaceAnnotations, Restart: o.restartAnnotations},
		ExcludedNamespaces: o.excludedNamespaces,
	}
}
