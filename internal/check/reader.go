package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	polling "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reader reads the Facts of a cluster.
type Reader struct {
	client.Client
	// Namespace is Stayput's own.
	Namespace string
	// Version returns the API server's version.
	Version func() (string, error)
	// Proxy is a client by which the API server calls Services, on the way on which it calls webhooks.
	Proxy rest.Interface
	// Dial reaches Services from within the cluster. If it is nil, the certificate that managers show is not looked at.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// DryRuns says whether to try writes in dry runs. It needs the right to make them.
	DryRuns bool
}

// NewReader returns a Reader that makes no dry runs and calls no Service directly.
func NewReader(config *rest.Config, namespace string) (Reader, error) {
	r := Reader{Namespace: namespace}
	known, err := Scheme()
	if err != nil {
		return r, err
	}
	if r.Client, err = client.New(config, client.Options{Scheme: known}); err != nil {
		return r, err
	}
	versions, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return r, err
	}
	r.Version = func() (string, error) {
		version, err := versions.ServerVersion()
		if err != nil {
			return "", err
		}
		return version.GitVersion, nil
	}
	plain := rest.CopyConfig(config)
	plain.APIPath, plain.GroupVersion = "/api", &corev1.SchemeGroupVersion
	plain.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	r.Proxy, err = rest.RESTClientFor(plain)
	return r, err
}

// Scheme returns a scheme with the kinds that a check reads.
func Scheme() (*runtime.Scheme, error) {
	known := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, discoveryv1.AddToScheme,
		eventsv1.AddToScheme, flowcontrolv1.AddToScheme, authorizationv1.AddToScheme, admissionv1.AddToScheme, cmapi.AddToScheme)
	return known, builder.AddToScheme(known)
}

// reading reads what a topic needs. Topics that share facts share what one of them has read.
type reading struct {
	about Topic
	read  func(Reader, context.Context, *Facts) error
}

// The readings, in their order: later ones use what earlier ones have read.
var (
	clusterReadings = []reading{
		{Namespaces, Reader.namespaces},
		{Managers, Reader.managers},
		{Webhooks, Reader.configurations},
		{Controllers, Reader.controllers},
		{Images, Reader.images},
		{Own, Reader.validatingPolicies},
		{Admission, Reader.mutatingPolicies},
		{Admission, Reader.foreign},
		{Certificate, Reader.certificates},
	}
	installationReadings = []reading{
		{Rights, Reader.rights},
		{Webhooks, Reader.webhooks},
		{Passing, Reader.passing},
		{Namespaces, Reader.misplaced},
	}
)

const (
	askPatience = 10 * time.Second
	askEvery    = time.Second
)

// Check reads and judges.
func (r Reader) Check(ctx context.Context) (Report, error) {
	facts, err := r.read(ctx)
	if err != nil {
		return Report{}, err
	}
	return Judge(facts), nil
}

// CheckUntilGood checks again until there is no finding, or patience ends. Right after an installation, the CA and the leader take a
// moment.
func (r Reader) CheckUntilGood(ctx context.Context, patience time.Duration) (report Report, err error) {
	_ = polling.PollUntilContextTimeout(ctx, askEvery, patience, true, func(context.Context) (bool, error) {
		report, err = r.Check(ctx)
		return err == nil && len(report.Findings) == 0, nil
	}) // its error would only be about time
	return report, err
}

// read returns an error only if the API server does not answer. What it refuses is in Facts.Unread.
func (r Reader) read(ctx context.Context) (Facts, error) {
	f := Facts{Namespace: r.Namespace, Now: time.Now(), Unread: map[Topic]error{}}
	var err error
	if f.Version, err = r.Version(); err != nil {
		return f, fmt.Errorf("the API server does not say its version: %w", err)
	}
	r.readAll(ctx, &f, clusterReadings)
	if f.installed() {
		r.readAll(ctx, &f, installationReadings)
	}
	return f, ctx.Err()
}

func (r Reader) readAll(ctx context.Context, f *Facts, readings []reading) {
	for _, each := range readings {
		once, cancel := context.WithTimeout(ctx, askPatience)
		if err := each.read(r, once, f); err != nil {
			f.Unread[each.about] = errors.Join(f.Unread[each.about], err)
		}
		cancel()
	}
}

// find reads an object, and reports whether it exists.
func (r Reader) find(ctx context.Context, namespace, name string, into client.Object) (bool, error) {
	err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	return err == nil, client.IgnoreNotFound(err)
}

func (r Reader) namespaces(ctx context.Context, f *Facts) error {
	var list corev1.NamespaceList
	err := r.List(ctx, &list)
	f.Namespaces = list.Items
	return err
}

func (r Reader) managers(ctx context.Context, f *Facts) error {
	var manager appsv1.Deployment
	found, err := r.find(ctx, r.Namespace, Deployment, &manager)
	if err != nil || !found {
		return err
	}
	f.Manager = &manager
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(r.Namespace), managerPods); err != nil {
		return err
	}
	f.Pods = pods.Items
	var lease coordinationv1.Lease
	if found, err = r.find(ctx, r.Namespace, leaseName, &lease); found {
		f.Lease = &lease
	}
	return err
}

func (r Reader) controllers(ctx context.Context, f *Facts) error {
	for _, name := range nativeControllers {
		found, err := r.find(ctx, kubeSystem, name, &corev1.ServiceAccount{})
		if err != nil {
			return err
		}
		if found {
			f.Accounts = append(f.Accounts, name)
		}
	}
	// kubeadm labels its static pods so. What follows is more than must be read.
	var pods corev1.PodList
	err := r.List(ctx, &pods, client.InNamespace(kubeSystem), client.MatchingLabels{"component": "kube-controller-manager"})
	f.ControllerManagers = pods.Items
	return utilerrors.FilterOut(err, apierrors.IsForbidden)
}
