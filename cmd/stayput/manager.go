package main

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/stayput/stayput/certs"
	"github.com/stayput/stayput/controller"
	"github.com/stayput/stayput/controller/release"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/observe"
	"github.com/stayput/stayput/port"
	"github.com/stayput/stayput/watchdog"
	admission "github.com/stayput/stayput/webhook"
)

// manage serves the webhooks and takes part in the election of the leader, which carries out the updates.
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
	m, keep, err := newManager(ctx, o, server)
	if err != nil {
		return err
	}
	if err := m.Add(certificate); err != nil {
		return err
	}
	if err := furnish(ctx, m, keep, o, certificate); err != nil {
		return err
	}
	return errors.Join(m.Start(ctx), lastWords(ctx, o, m))
}

// lastWordsPatience bounds what is still done once the webhooks no longer answer.
const lastWordsPatience = 8 * time.Second

func lastWords(ctx context.Context, o options, m manager.Manager) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWordsPatience)
	defer cancel()
	return release.LastWords(ctx, m.GetClient(), o.reader(m.GetAPIReader()))
}

// webhookServer shows the certificate, and wants one where it is told whose.
func webhookServer(o options, certificate *certwatcher.CertWatcher) (webhook.Server, error) {
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

func newManager(ctx context.Context, o options, server webhook.Server) (manager.Manager, *observe.Keep, error) {
	config, err := connection()
	if err != nil {
		return nil, nil, err
	}
	direct, err := clientOver(config)
	if err != nil {
		return nil, nil, err
	}
	keep, err := observe.NewKeep(ctx, o.reader(direct))
	if err != nil {
		return nil, nil, err
	}
	m, err := ctrl.NewManager(config, manager.Options{
		Scheme:                     direct.Scheme(),
		Cache:                      cacheOptions(o.namespace, keep),
		Metrics:                    metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:     o.healthAddress,
		PprofBindAddress:           o.pprofAddress,
		WebhookServer:              server,
		LeaderElection:             true,
		LeaderElectionID:           inplace.Lease,
		LeaderElectionNamespace:    o.namespace,
		LeaderElectionResourceLock: resourcelock.LeasesResourceLock,
		// A new leader takes over before observe.HoldPatience has let go of what the old one held: 8 s after it saw the last
		// renewal, which it looks for every 1 to 2.2 s (JitterFactor of client-go/tools/leaderelection).
		LeaseDuration: ptr.To(8 * time.Second),
		RenewDeadline: ptr.To(6 * time.Second),
		RetryPeriod:   ptr.To(time.Second),
		// Safe, since the process ends as soon as the manager does.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(10 * time.Second),
	})
	return m, keep, err
}

// furnish puts controllers, webhooks and checks into the manager. Caches are filled and gates opened on every replica.
func furnish(ctx context.Context, m manager.Manager, keep *observe.Keep, o options, certificate *certwatcher.CertWatcher) error {
	filled, err := watch(ctx, m.GetCache(), keep)
	if err != nil {
		return err
	}
	if err := observe.Index(ctx, m.GetFieldIndexer()); err != nil {
		return err
	}
	stores, err := observe.StoresOf(ctx, m.GetCache())
	if err != nil {
		return err
	}
	hold := observe.Hold{Reader: m.GetCache(), Namespace: o.namespace}
	cached, live := o.reader(m.GetCache()), o.reader(m.GetAPIReader())
	cached.Stores, cached.Whole, cached.Hold, live.Hold = stores, observe.NewWhole(m.GetAPIReader()), hold, hold
	if cached.Waiter, err = waiter(ctx, m.GetAPIReader(), o.namespace); err != nil {
		return err
	}
	dog := &watchdog.Watchdog{}
	if err := m.Add(dog); err != nil {
		return err
	}
	prober, err := controller.Setup(m, cached, dog)
	if err != nil {
		return err
	}
	admission.Register(m.GetWebhookServer(), admission.Handlers{
		Cached: cached,
		Live:   live,
		Hold:   hold,
		// Who is told to go opens no gate of pods born later.
		GateReady: func() bool { return ctx.Err() == nil && prober.Ready() },
		Watchdog:  dog,
		Log:       m.GetLogger().WithName("admission"),
	})
	if err := m.AddHealthzCheck("work-ends", dog.Check); err != nil {
		return err
	}
	return m.AddReadyzCheck("webhooks", certs.Ready(certificate, m.GetWebhookServer(), filled, once(provenBy(prober))))
}

// reader reads what inplace decides on, by the rules of the command line.
func (o options) reader(from client.Reader) observe.Reader {
	return observe.Reader{
		Reader:             from,
		Rules:              inplace.Rules{Annotations: o.inPlaceAnnotations, Restart: o.restartAnnotations},
		ExcludedNamespaces: o.excludedNamespaces,
	}
}
