package main

import (
	"context"
	"fmt"

	"github.com/cert-manager/cert-manager/pkg/api"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/util"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// runInjector fills the caBundle of webhook configurations, APIServices and CRDs that ask for it, until ctx ends.
func runInjector(ctx context.Context, kubeconfig, health string) error {
	manager, err := injectorManager(kubeconfig, health)
	if err != nil {
		return fmt.Errorf("cainjector: %w", err)
	}
	err = cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.APIServiceName:                     true,
			cainjector.CustomResourceDefinitionName:       true,
		},
	})
	if err != nil {
		return fmt.Errorf("cainjector: %w", err)
	}
	return manager.Start(ctx)
}

// injectorManager returns the manager of cert-manager's cmd/cainjector, without leader election: there is one process.
func injectorManager(kubeconfig, health string) (ctrl.Manager, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	scheme, err := injectorScheme()
	if err != nil {
		return nil, err
	}
	// The user agent is also the field manager of server-side apply, and must not be empty.
	manager, err := ctrl.NewManager(util.RestConfigWithUserAgent(config, "cainjector"), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metrics.Options{BindAddress: "0"},
		HealthProbeBindAddress: health,
		// Secrets are watched as metadata only. Reading one through the cache would cache all of them.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return nil, err
	}
	return manager, manager.AddReadyzCheck("ping", healthz.Ping)
}

func injectorScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		clientscheme.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme, api.AddToScheme)
	return scheme, builder.AddToScheme(scheme)
}
