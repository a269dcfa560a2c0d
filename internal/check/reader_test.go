package check

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/internal/observe"
	"github.com/stayput/stayput/internal/watchdog"
	admission "github.com/stayput/stayput/webhook"
)

// checked is a cluster as a Reader finds it. In the cluster of the zero value everything works.
type checked struct {
	expired, otherCA, noBundle bool
	host                       string        // of the certificate; empty for the right one
	path                       string        // a suffix of each webhook's path. With it, no manager serves the path
	age                        time.Duration // of the Lease
	firewall                   bool
	says                       *metav1.Status     // what the API server says instead of passing requests on to managers
	callers                    tls.ClientAuthType // which callers managers answer
	account                    string             // the managers' service account; empty for the one of the manifests
	withoutRight               string             // a verb and a resource that the managers may not use
	bypassing                  bool               // the API server calls no webhook
	refusing                   error              // what the API server says of new Deployments
	noVolumes                  bool               // the API server refuses image volumes
	unreadable                 bool               // this check may not list nodes
	other                      []client.Object
}

// reader returns a Reader of the cluster, in which Stayput's own handlers answer over TLS.
func (c checked) reader(t *testing.T) Reader {
	t.Helper()
	until := time.Now().Add(time.Hour)
	if c.expired {
		until = time.Now().Add(-time.Hour)
	}
	certificate, bundle := certificateFor(t, c.host+ownHost, until)
	if c.otherCA {
		_, bundle = certificateFor(t, ownHost, until)
	}
	if c.noBundle {
		bundle = nil
	}
	known, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	byReason := func(object client.Object) []string { return []string{object.(*eventsv1.Event).Reason} }
	cluster := fake.NewClientBuilder().WithScheme(known).WithObjects(append(c.objects(t, bundle), c.other...)...).
		WithIndex(&eventsv1.Event{}, "reason", byReason).
		WithInterceptorFuncs(interceptor.Funcs{Create: c.create, List: c.list}).Build()
	managers := serveManagers(t, cluster, certificate, c.callers)
	return Reader{Client: cluster, Namespace: own, Proxy: c.proxy(t, managers), DryRuns: true,
		Version: func() (string, error) { return "v1.36.3", nil },
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != ownHost+":443" {
				t.Errorf("it calls %s", address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, managers.Listener.Addr().String())
		}}
}

// create answers as the API server does: reviews of access, and dry runs.
func (c checked) create(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
	switch o := object.(type) {
	case *authorizationv1.SubjectAccessReview:
		asked := o.Spec.ResourceAttributes
		o.Status.Allowed = asked.Verb+" "+asked.Resource != c.withoutRight &&
			strings.HasSuffix(o.Spec.User, ":"+cmp.Or(c.account, readiness.ServiceAccount))
		return nil
	case *appsv1.Deployment:
		if !c.bypassing {
			delete(o.Annotations, inplace.AnnotationDecision)
		}
		return c.refusing
	case *corev1.Pod:
		if c.noVolumes {
			return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), o.Name,
				field.ErrorList{field.Required(field.NewPath("spec", "volumes").Index(0), "must specify a volume type")})
		}
		return nil
	}
	return errors.New("a check creates nothing else")
}

func (c checked) list(ctx context.Context, from client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	if _, is := list.(*corev1.NodeList); is && c.unreadable {
		return apierrors.NewForbidden(corev1.Resource("nodes"), "", nil)
	}
	return from.List(ctx, list, options...)
}

// serveManagers serves Stayput's own handlers.
func serveManagers(t *testing.T, cluster client.Reader, certificate tls.Certificate, callers tls.ClientAuthType) *httptest.Server {
	t.Helper()
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{})
	reader := observe.Reader{Reader: cluster, ExcludedNamespaces: []string{own}}
	admission.Register(server, admission.Handlers{Sources: admission.Sources{Cached: reader, Live: reader}, Watchdog: &watchdog.Watchdog{}})
	managers := httptest.NewUnstartedServer(server.WebhookMux())
	managers.Config.ErrorLog = nil
	managers.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13, ClientAuth: callers}
	managers.StartTLS()
	t.Cleanup(managers.Close)
	return managers
}

// objects returns what the manifests install, with the faults of c. The certificate was made by hand.
func (c checked) objects(t *testing.T, bundle []byte) (objects []client.Object) {
	t.Helper()
	f := healthy(t)
	f.bundles(bundle)
	f.Mutating.Annotations, f.Validating.Annotations = nil, nil
	for i := range f.Mutating.Webhooks {
		*f.Mutating.Webhooks[i].ClientConfig.Service.Path += c.path
	}
	pod := &f.Manager.Spec.Template.Spec
	pod.ServiceAccountName = cmp.Or(c.account, pod.ServiceAccountName)
	objects = append(objects, f.Manager, f.Mutating, f.Validating, lease(f.Now.Add(-c.age)),
		manifest[corev1.Service](t, "Service"), manifest[corev1.ConfigMap](t, "ConfigMap"),
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "stayput-webhook-1",
			Labels: map[string]string{discoveryv1.LabelServiceName: "stayput-webhook"}}, Endpoints: []discoveryv1.Endpoint{{}}})
	objects = slices.Concat(objects, pointers(f.Namespaces), pointers(f.Nodes), pointers(f.PolicyBindings),
		pointers(manifests[admissionv1.ValidatingAdmissionPolicy](t, "ValidatingAdmissionPolicy")),
		pointers(manifests[flowcontrolv1.FlowSchema](t, "FlowSchema")))
	for _, name := range nativeControllers {
		objects = append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: kubeSystem, Name: name}})
	}
	return objects
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

// proxy returns a client of an API server that passes requests on to the managers' Service, unless there is a firewall in between.
func (c checked) proxy(t *testing.T, managers *httptest.Server) rest.Interface {
	t.Helper()
	const prefix = "/api/v1/namespaces/" + own + "/services/https:stayput-webhook:webhook/proxy"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, is := strings.CutPrefix(r.URL.Path, prefix)
		if c.says != nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(int(c.says.Code))
			if err := json.NewEncoder(w).Encode(c.says); err != nil {
				t.Error(err)
			}
			return
		}
		if !is || c.firewall {
			http.Error(w, "error trying to reach service: dial tcp 10.0.0.1:10250: i/o timeout", http.StatusServiceUnavailable)
			return
		}
		passed, err := http.NewRequestWithContext(r.Context(), r.Method, managers.URL+path, r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		passed.Header = r.Header.Clone()
		insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} // as API servers proxy
		response, err := insecure.RoundTrip(passed)
		if err != nil {
			http.Error(w, "error trying to reach service: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer func() { _ = response.Body.Close() }()
		w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
		w.WriteHeader(response.StatusCode)
		if _, err := io.Copy(w, response.Body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	apiServer, err := rest.RESTClientFor(&rest.Config{Host: server.URL, APIPath: "/api", ContentConfig: rest.ContentConfig{
		GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()}})
	if err != nil {
		t.Fatal(err)
	}
	return apiServer
}

// TestCheck reads clusters, and asks Stayput's own webhooks over TLS.
func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		checked
		want []Topic
		says string
	}{
		"in order":          {checked{}, nil, "the API server reaches the managers, and all 14 answer"},
		"a dry run":         {checked{}, nil, "a dry run in namespace shop passed through the webhooks"},
		"expired":           {checked{expired: true}, []Topic{Certificate}, "expired"},
		"for another host":  {checked{host: "other-"}, []Topic{Certificate}, "not " + ownHost},
		"of another CA":     {checked{otherCA: true}, []Topic{Certificate}, "unknown authority"},
		"no CA":             {checked{noBundle: true}, []Topic{Certificate}, "certificates.caBundle"},
		"a path not served": {checked{path: "-2"}, []Topic{Webhooks}, "404"},
		"no leader":         {checked{age: 2 * time.Minute}, []Topic{Managers}, "the Lease was renewed 2m"},
		"API servers only":  {checked{callers: tls.RequireAnyClientCert}, nil, "all 14 answer"},
		"a firewall":        {checked{firewall: true}, []Topic{Webhooks}, "i/o timeout"},
		"no ready endpoint by now": {checked{says: &apierrors.NewServiceUnavailable(`no endpoints available for service "web"`).ErrStatus},
			[]Topic{Webhooks}, `so updates are native: no endpoints available for service "web"` + "\n"},
		"a right that the user lacks": {checked{says: &apierrors.NewForbidden(corev1.Resource("services/proxy"), "web", nil).ErrStatus},
			[]Topic{Webhooks}, `unchecked  webhooks: services/proxy "web" is forbidden`},
		"a right less":         {checked{withoutRight: "patch pods"}, []Topic{Rights}, "may not patch pods"},
		"another account":      {checked{account: "in-place-updates"}, nil, "the API server reaches the managers, and all 14 answer"},
		"bypassed":             {checked{bypassing: true}, []Topic{Passing}, "namespace shop passed without an answer"},
		"a policy in between":  {checked{refusing: errors.New("no team")}, []Topic{Passing}, "no team"},
		"no image volumes":     {checked{noVolumes: true}, []Topic{Images}, "must specify a volume type"},
		"what may not be read": {checked{unreadable: true}, []Topic{Images}, "nodes is forbidden"},
		"a webhook without pods": {checked{other: []client.Object{guarding(pods(admissionv1.Update))}}, []Topic{Admission},
			"Service guard/guard"},
		"a label on a Deployment": {checked{other: []client.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web", Labels: map[string]string{inplace.LabelUpdate: "in-place"}}}}}, []Topic{Namespaces},
			"Deployment default/web"},
		"a native write that passed": {checked{other: []client.Object{&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"},
			Reason: report.EventBypassed, Note: "it was not held",
			Regarding: corev1.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "web"}}}},
			[]Topic{Passing}, "Deployment shop/web: it was not held"},
		"a mutating policy of others": {checked{other: []client.Object{&admissionv1.MutatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "defaults"}, Spec: admissionv1.MutatingAdmissionPolicySpec{
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{
					{RuleWithOperations: pods(admissionv1.Create)[0]}}}}}}}, nil, "they decide about pods too: defaults"},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := test.reader(t).Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var found []Topic
			for _, each := range report.Findings {
				found = append(found, each.About)
			}
			var said strings.Builder
			if err := report.PrintText(&said); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(found, test.want) || !strings.Contains(said.String(), test.says) {
				t.Errorf("findings are about %q, want %q; and it must say %q:\n%s", found, test.want, test.says, said.String())
			}
		})
	}
}

func guarding(rules []admissionv1.RuleWithOperations) client.Object {
	return &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Webhooks: []admissionv1.ValidatingWebhook{foreign(rules, nil).ValidatingWebhook}}
}

// TestCheckBeforeInstallation reads a cluster with nothing of Stayput.
func TestCheckBeforeInstallation(t *testing.T) {
	known, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	r := Reader{Client: fake.NewClientBuilder().WithScheme(known).Build(), Namespace: own,
		Version: func() (string, error) { return "v1.33.1", nil }}
	found, err := r.Check(t.Context())
	if err != nil || found.Installed || !found.Has(Error) || found.Findings[0].About != Kubernetes || found.Findings[1].About != Controllers {
		t.Errorf("it finds %+v: %v", found, err)
	}
	r.Version = func() (string, error) { return "", errors.New("connection refused") }
	if _, err := r.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("without an API server the error is %v", err)
	}
}

// TestCheckUntilGood waits for a cluster that is not right yet, and gives up on one that never is.
func TestCheckUntilGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known, err := Scheme()
		if err != nil {
			t.Fatal(err)
		}
		cluster, asked := fake.NewClientBuilder().WithScheme(known).Build(), 0
		for _, name := range nativeControllers {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: kubeSystem, Name: name}}
			if err := cluster.Create(t.Context(), account); err != nil {
				t.Fatal(err)
			}
		}
		r := Reader{Client: cluster, Namespace: own, Version: func() (string, error) {
			if asked++; asked < 3 {
				return "", errors.New("not yet")
			}
			return "v1.36.3", nil
		}}
		if _, err := r.CheckUntilGood(t.Context(), 30*time.Second); err != nil || asked != 3 {
			t.Errorf("it asks %d times: %v", asked, err)
		}
		asked, r.Version = 0, func() (string, error) { asked++; return "v1.20.0", nil }
		began := time.Now()
		if found, err := r.CheckUntilGood(t.Context(), 30*time.Second); err != nil || !found.Has(Error) || time.Since(began) != 30*time.Second {
			t.Errorf("after %s it finds %+v: %v", time.Since(began), found, err)
		}
	})
}
