package check

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/internal/observe"
	"github.com/stayput/stayput/internal/watchdog"
	admission "github.com/stayput/stayput/webhook"
)

const own = "stayput-system"

// manifest returns the first object of that kind in manifests/base.
func manifest[T any](t *testing.T, kind string) *T {
	t.Helper()
	all := manifests[T](t, kind)
	if len(all) == 0 {
		t.Fatalf("manifests/base has no %s", kind)
	}
	return &all[0]
}

// manifests returns all objects of that kind in manifests/base.
func manifests[T any](t *testing.T, kind string) (all []T) {
	t.Helper()
	for _, document := range documents()[kind] {
		var object T
		if err := json.Unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

// documents returns the objects of manifests/base as JSON, by their kinds.
var documents = sync.OnceValue(func() map[string][][]byte {
	byKind := map[string][][]byte{}
	files, _ := filepath.Glob("../../manifests/base/*.yaml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			var is metav1.TypeMeta
			object, err := yaml.YAMLToJSON(document)
			if err = errors.Join(err, json.Unmarshal(object, &is)); err != nil {
				panic(fmt.Errorf("%s: %w", file, err))
			}
			byKind[is.Kind] = append(byKind[is.Kind], object)
		}
	}
	return byKind
})

// cluster is what a Checker finds. Tests break it. Stayput's own handlers answer over TLS.
type cluster struct {
	version    string
	manager    *appsv1.Deployment
	mutating   *admissionv1.MutatingWebhookConfiguration
	validating *admissionv1.ValidatingWebhookConfiguration
	lease      *coordinationv1.Lease
	others     []client.Object

	firewall      bool
	says          *metav1.Status     // what the API server says instead of passing requests on to managers
	readyz        string             // what a manager says of itself
	callers       tls.ClientAuthType // which callers managers answer
	bypassing     bool               // the API server calls no webhook
	refusing      error              // what the API server says of new Deployments
	unreadable    bool               // this check may not list nodes
	noCertManager bool
}

// sound returns a cluster in which everything works, as the manifests install it.
func sound(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{version: "v1.36.3",
		manager:    manifest[appsv1.Deployment](t, "Deployment"),
		mutating:   manifest[admissionv1.MutatingWebhookConfiguration](t, "MutatingWebhookConfiguration"),
		validating: manifest[admissionv1.ValidatingWebhookConfiguration](t, "ValidatingWebhookConfiguration"),
		lease: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: inplace.Lease},
			Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Now()}}},
		others: slices.Concat(pointers(manifests[admissionv1.ValidatingAdmissionPolicy](t, "ValidatingAdmissionPolicy")),
			pointers(manifests[admissionv1.ValidatingAdmissionPolicyBinding](t, "ValidatingAdmissionPolicyBinding")),
			[]client.Object{manifest[corev1.ConfigMap](t, "ConfigMap"), node("one", "containerd://2.1.4"), labelled("shop", "in-place"),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}})}
	c.manager.Status = appsv1.DeploymentStatus{AvailableReplicas: 2, UpdatedReplicas: 2}
	for _, name := range nativeControllers() {
		c.with(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: kubeSystem, Name: name}})
	}
	c.bundles([]byte("CA"))
	return c
}

// bundles gives each webhook a CA.
func (c *cluster) bundles(bundle []byte) {
	for i := range c.mutating.Webhooks {
		c.mutating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	for i := range c.validating.Webhooks {
		c.validating.Webhooks[i].ClientConfig.CABundle = bundle
	}
}

// without removes the object of that type and name.
func without[T client.Object](name string) func(*cluster) {
	return func(c *cluster) {
		c.others = slices.DeleteFunc(c.others, func(each client.Object) bool {
			_, is := each.(T)
			return is && each.GetName() == name
		})
	}
}

// down has no manager run, for a reason that the pod knows.
func (c *cluster) down(of corev1.PodStatus) {
	c.manager.Status = appsv1.DeploymentStatus{}
	c.with(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "stayput-1", Labels: c.manager.Spec.Template.Labels},
		Spec: c.manager.Spec.Template.Spec, Status: of})
}

func (c *cluster) with(object client.Object) { c.others = append(c.others, object) }

// checker returns a Checker of the cluster.
func (c *cluster) checker(t *testing.T, installed bool) Checker {
	t.Helper()
	known := runtime.NewScheme()
	if err := addKinds(known); err != nil {
		t.Fatal(err)
	}
	objects := c.others
	if installed {
		objects = slices.Concat(objects, existing(c.manager), existing(c.mutating), existing(c.validating), existing(c.lease))
	}
	certManager := schema.GroupVersion{Group: "cert-manager.io", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{certManager})
	if !c.noCertManager {
		mapper.Add(certManager.WithKind("Certificate"), meta.RESTScopeNamespace)
	}
	fakes := fake.NewClientBuilder().WithScheme(known).WithRESTMapper(mapper).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{Create: c.create, List: c.list}).Build()
	return Checker{Client: fakes, Namespace: own, Raw: c.apiServer(t, serveManagers(t, fakes, c.callers)), DryRuns: true}
}

// existing returns the object in a list, which is empty if the object is nil.
func existing[T any, P interface {
	*T
	client.Object
}](object P) []client.Object {
	if object == nil {
		return nil
	}
	return []client.Object{object}
}

// create answers dry runs as the API server does.
func (c *cluster) create(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
	o, is := object.(*appsv1.Deployment)
	if !is {
		return errors.New("a check creates nothing else")
	}
	if !c.bypassing {
		delete(o.Annotations, inplace.AnnotationDecision)
	}
	return c.refusing
}

func (c *cluster) list(ctx context.Context, from client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	if _, is := list.(*corev1.NodeList); is && c.unreadable {
		return apierrors.NewForbidden(corev1.Resource("nodes"), "", nil)
	}
	return from.List(ctx, list, options...)
}

// serveManagers serves Stayput's own handlers.
func serveManagers(t *testing.T, cluster client.Reader, callers tls.ClientAuthType) *httptest.Server {
	t.Helper()
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{})
	reader := observe.Reader{Reader: cluster, ExcludedNamespaces: []string{own}}
	admission.Register(server, admission.Handlers{Sources: admission.Sources{Cached: reader, Live: reader}, Watchdog: &watchdog.Watchdog{}})
	managers := httptest.NewUnstartedServer(server.WebhookMux())
	managers.Config.ErrorLog = log.New(io.Discard, "", 0)
	managers.TLS = &tls.Config{MinVersion: tls.VersionTLS13, ClientAuth: callers}
	managers.StartTLS()
	t.Cleanup(managers.Close)
	return managers
}

// pointers returns the elements of a list as objects.
func pointers[T any, P interface {
	*T
	client.Object
}](list []T) (all []client.Object) {
	for i := range list {
		all = append(all, P(&list[i]))
	}
	return all
}

// apiServer returns a client of an API server that passes requests on to the managers, unless there is a firewall in between.
func (c *cluster) apiServer(t *testing.T, managers *httptest.Server) rest.Interface {
	t.Helper()
	const prefix = "/api/v1/namespaces/" + own
	paths := http.NewServeMux()
	paths.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"gitVersion":%q}`, c.version) })
	paths.HandleFunc(prefix+"/pods/stayput-1:8081/proxy/readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, c.readyz, http.StatusInternalServerError)
	})
	const services = prefix + "/services/https:stayput-webhook:webhook/proxy"
	paths.HandleFunc(services+"/", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case c.says != nil:
			text, _ := json.Marshal(c.says)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(int(c.says.Code))
			fmt.Fprint(w, string(text))
		case c.firewall:
			http.Error(w, "error trying to reach service: dial tcp 10.0.0.1:10250: i/o timeout", http.StatusServiceUnavailable)
		default:
			passOn(w, r, managers.URL+strings.TrimPrefix(r.URL.Path, services))
		}
	})
	server := httptest.NewServer(paths)
	t.Cleanup(server.Close)
	raw, err := rest.RESTClientFor(&rest.Config{Host: server.URL, APIPath: "/api", QPS: -1, ContentConfig: rest.ContentConfig{
		GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// passOn proxies a request as API servers do: they do not verify the certificate, and show none.
func passOn(w http.ResponseWriter, r *http.Request, url string) {
	passed, err := http.NewRequestWithContext(r.Context(), r.Method, url, r.Body)
	if err != nil {
		panic(err)
	}
	passed.Header = r.Header.Clone()
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := insecure.RoundTrip(passed)
	if err != nil {
		http.Error(w, "error trying to reach service: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer func() { _ = response.Body.Close() }()
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body)
}

func node(name, containers string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{
		KubeletVersion: "v1.36.3", ContainerRuntimeVersion: containers, OperatingSystem: "linux"}}}
}

func labelled(name, mode string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{inplace.LabelUpdate: mode}}}
}

// untrue returns the status of a pod with a condition that is false.
func untrue(kind corev1.PodConditionType, message string) corev1.PodStatus {
	return corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: kind, Status: corev1.ConditionFalse, Message: message}}}
}
