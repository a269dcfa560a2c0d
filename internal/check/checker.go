package check

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Checker checks a cluster.
type Checker struct {
	client.Client
	// Namespace is Stayput's own.
	Namespace string
	// Raw sends requests that are not about objects: for the API server's version, and for what it passes on to Services and pods.
	Raw rest.Interface
	// DryRuns says whether to try writes in dry runs. The user needs the right to make them.
	DryRuns bool
	// Prove says whether to have the native controllers prove who they are, in a namespace that is deleted again.
	Prove bool
}

// New returns a Checker that makes no dry runs.
func New(config *rest.Config, namespace string) (c Checker, err error) {
	known := runtime.NewScheme()
	if err := addKinds(known); err != nil {
		return c, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // one request follows the other, so none has to wait
	if c.Client, err = client.New(config, client.Options{Scheme: known}); err != nil {
		return c, err
	}
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	c.Namespace = namespace
	c.Raw, err = rest.RESTClientFor(config)
	return c, err
}

// addKinds adds the kinds that a check reads to a scheme.
var addKinds = (&runtime.SchemeBuilder{corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme,
	admissionv1.AddToScheme}).AddToScheme

// run is one check. Its first steps read what several topics need.
type run struct {
	Checker
	Report
	about      string // the current topic
	version    string // of the API server
	namespaces []corev1.Namespace
	manager    *appsv1.Deployment // nil if there is none
	hooks      []hook
}

// steps are in order. After a topic has a finding, its further steps are left out: what could not be read is not judged.
var steps = []struct {
	about string
	// installed says that the step needs an installation.
	installed bool
	// do returns what to say if nothing is wrong.
	do func(*run, context.Context) (says string, err error)
}{
	{"labels", false, (*run).readNamespaces},
	{"managers", false, (*run).readManager},
	{"webhooks", false, (*run).readWebhooks},
	{"Kubernetes", false, (*run).kubernetes},
	{"native controllers", false, (*run).controllers},
	{"images first", false, (*run).images},
	{"certificate", false, (*run).certificate},
	{"managers", true, (*run).managers},
	{"webhooks", true, (*run).webhooks},
	{"writes", true, (*run).writes},
	{"objects", true, (*run).objects},
	{"labels", true, (*run).labels},
}

// Check returns an error only if the API server does not answer. What it refuses is a finding.
func (c Checker) Check(ctx context.Context) (Report, error) {
	r := &run{Checker: c, Report: Report{Findings: []Finding{}, Passed: []Passed{}}}
	apiServer, err := discovery.NewDiscoveryClient(c.Raw).ServerVersion()
	if err != nil {
		return r.Report, fmt.Errorf("the API server does not say its version: %w", err)
	}
	r.version = apiServer.GitVersion
	for _, step := range steps {
		if r.about = step.about; r.finds(r.about) || step.installed && !r.installed() {
			continue
		}
		once, cancel := context.WithTimeout(ctx, 30*time.Second)
		says, err := step.do(r, once)
		cancel()
		if err != nil {
			r.add(Unchecked, err.Error(), "run the check as a user who may read this; an administrator (cluster-admin) may read all")
		} else if says != "" && !r.finds(r.about) {
			r.Passed = append(r.Passed, Passed{r.about, says})
		}
	}
	r.Installed = r.installed()
	return r.Report, ctx.Err()
}

// find reads an object, and reports whether it exists.
func (c Checker) find(ctx context.Context, namespace, name string, into client.Object) (bool, error) {
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	return err == nil, client.IgnoreNotFound(err)
}

// installed reports whether a part of Stayput is in the cluster.
func (r *run) installed() bool { return r.manager != nil || len(r.hooks) > 0 }

// again mends an installation in which something is missing.
const again = "install Stayput again as it was installed: helm upgrade, make install, or kubectl apply"

func (r *run) add(level Level, problem, remedy string) {
	r.Findings = append(r.Findings, Finding{level, r.about, problem, remedy})
}
