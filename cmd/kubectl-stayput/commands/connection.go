package commands

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/internal/observe"
)

// connection is a connection to the cluster that kubectl's own flags name.
type connection struct {
	*genericclioptions.ConfigFlags
	// own is Stayput's namespace.
	own string
}

// connect adds kubectl's flags, which say which cluster it is, and returns the connection that they describe.
func connect(flags *pflag.FlagSet) *connection {
	c := &connection{ConfigFlags: genericclioptions.NewConfigFlags(true)}
	c.AddFlags(flags)
	flags.StringVar(&c.own, "stayput-namespace", "stayput-system", "`namespace` in which Stayput runs")
	return c
}

// config returns the client configuration. It asks for JSON, because package apps keeps pod templates as raw JSON.
func (c *connection) config(warnings rest.WarningHandler) (*rest.Config, error) {
	config, err := c.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes, config.WarningHandler = runtime.ContentTypeJSON, runtime.ContentTypeJSON, warnings
	config.QPS, config.Burst = 50, 300 // kubectl's own
	return config, nil
}

// client returns a client that reads workloads into the types of package inplace/apps.
func (c *connection) client(warnings rest.WarningHandler) (client.Client, error) {
	config, err := c.config(warnings)
	if err != nil {
		return nil, err
	}
	known := runtime.NewScheme()
	all := runtime.NewSchemeBuilder(corev1.AddToScheme, apps.AddToScheme, policyv1.AddToScheme, autoscalingv2.AddToScheme)
	if err := all.AddToScheme(known); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: known, Mapper: mapper()})
}

// mapper returns the few kinds that the plugin reads, so that the plugin need not ask the API server which kinds it serves.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range observe.Types() {
		m.Add(apps.KindOf(kind.Object()), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Pod", "PersistentVolumeClaim", "Event"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	m.Add(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), meta.RESTScopeNamespace)
	m.Add(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	return m
}

// reader returns a reader that reads only what a user with the role edit in one namespace may read: neither nodes nor the ConfigMap of
// persisted fallbacks. If answered is true, Stayput has already said that it manages the workload.
func (c *connection) reader(from client.Reader, answered bool) observe.Reader {
	return observe.Reader{Reader: namespaces{from, answered}, ExcludedNamespaces: observe.Excluded{"kube-system", c.own}}.WithoutNodes()
}

// namespaces is a reader for a user who may not read the namespace. If Stayput has answered, it acts as if the namespace were labelled;
// otherwise its error explains why the namespace must be read.
type namespaces struct {
	client.Reader
	answered bool
}

// Get implements client.Reader.
func (n namespaces) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := n.Reader.Get(ctx, key, object, options...)
	namespace, is := object.(*corev1.Namespace)
	switch {
	case !is || !apierrors.IsForbidden(err):
		return err
	case n.answered:
		namespace.Name, namespace.Labels = key.Name, map[string]string{inplace.LabelUpdate: string(inplace.ModeInPlace)}
		return nil
	}
	return fmt.Errorf("its label %s decides, and you may not read it (ClusterRole view, bound in that namespace, lets you): %w",
		inplace.LabelUpdate, err)
}
