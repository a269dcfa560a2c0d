package commands

import (
	"context"

	"github.com/spf13/pflag"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	all := runtime.NewSchemeBuilder(corev1.AddToScheme, apps.AddToScheme, policyv1.AddToScheme, autoscalingv2.AddToScheme,
		coordinationv1.AddToScheme)
	if err := all.AddToScheme(known); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: known, Mapper: mapper(known)})
}

// mapper maps the kinds of the scheme, so that the plugin need not ask the API server which kinds it serves.
func mapper(known *runtime.Scheme) meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for kind := range known.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if kind.Kind == "Namespace" || kind.Kind == "Node" {
			scope = meta.RESTScopeRoot
		}
		m.Add(kind, scope)
	}
	return m
}

// listMeta lists the metadata of the objects of a type.
func listMeta(
	ctx context.Context, from client.Reader, of observe.Type, options ...client.ListOption,
) ([]metav1.PartialObjectMetadata, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(apps.KindOf(of.Object()))
	err := from.List(ctx, &list, options...)
	return list.Items, err
}

// reader returns a reader that reads only what a user with the role edit in one namespace may read: neither nodes nor the ConfigMap of
// persisted fallbacks.
func (c *connection) reader(from client.Reader) observe.Reader {
	return observe.Reader{Reader: from, ExcludedNamespaces: observe.Excluded{"kube-system", c.own}}.WithoutNodes()
}
