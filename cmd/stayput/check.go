package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	polling "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/observe"
)

const (
	// checkPatience is how long all questions together may go without good answers. Right after an installation, the CA and the leader take a
	// moment.
	checkPatience = 30 * time.Second
	askPatience   = 5 * time.Second
	askEvery      = time.Second
)

// question is one condition for updates in place. Its answer says that it holds. Its error says what is wrong and how to correct it.
type question struct {
	about string
	ask   func(context.Context) (answer string, err error)
}

// check prints whether Stayput works, and fails if it does not. helm test runs it in a pod of Stayput's namespace.
func check(ctx context.Context, o options) error {
	c, err := directClient()
	if err != nil {
		return err
	}
	apiServer, err := proxyClient()
	if err != nil {
		return err
	}
	e := examination{Client: c, apiServer: apiServer, namespace: o.namespace, dial: (&net.Dialer{}).DialContext}
	return put(ctx, os.Stdout, checkPatience, e.questions())
}

func (e examination) questions() []question {
	return []question{
		{"leader", e.leader},
		{"certificate", e.certificate},
		{"webhooks", e.webhooks},
		{"webhook port", e.port},
		{"policies", e.policies},
		{"mutating policies", e.mutatingPolicies},
	}
}

// put asks each question at least once, and asks it again until it has a good answer or the common patience ends. It asks every question,
// also if others have failed.
func put(ctx context.Context, out io.Writer, patience time.Duration, questions []question) error {
	wrong, deadline := 0, time.Now().Add(patience)
	for _, q := range questions {
		answer, err := askUntilGood(ctx, time.Until(deadline), q)
		if err != nil {
			wrong++
			fmt.Fprintf(out, "wrong  %s: %v\n", q.about, err)
			continue
		}
		fmt.Fprintf(out, "ok     %s: %s\n", q.about, answer)
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d checks failed; updates may be native", wrong, len(questions))
	}
	return nil
}

func askUntilGood(ctx context.Context, patience time.Duration, q question) (answer string, err error) {
	_ = polling.PollUntilContextTimeout(ctx, askEvery, patience, true, func(context.Context) (bool, error) {
		once, cancel := context.WithTimeout(ctx, askPatience)
		defer cancel()
		answer, err = q.ask(once)
		return err == nil, nil
	}) // its error would only be about time; the last error of the question says more
	return answer, err
}

// examination has the clients that the questions need.
type examination struct {
	client.Client
	apiServer rest.Interface
	namespace string
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
}

// proxyClient returns a client by which the API server calls Services, on the way on which it calls webhooks.
func proxyClient() (rest.Interface, error) {
	config, err := connection()
	if err != nil {
		return nil, err
	}
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	return rest.RESTClientFor(config)
}

// leader asks whether a manager leads: without a leader no native write is held, and every update is native.
func (e examination) leader(ctx context.Context) (string, error) {
	alive, reason, err := observe.Hold{Reader: e.Client, Namespace: e.namespace}.Alive(ctx)
	if err != nil {
		return "", err
	}
	if !alive {
		return "", fmt.Errorf("no manager carries out updates: %s; are the managers ready (kubectl -n %s get pods)?", reason, e.namespace)
	}
	return "a manager leads and has renewed its Lease", nil
}

// hook is a mutating or validating webhook, with what both have in common.
type hook struct {
	name string
	admissionv1.WebhookClientConfig
}

// address returns the host and the port at which API servers call the webhook.
func (h hook) address() (host, port string, err error) {
	if h.Service == nil {
		return "", "", fmt.Errorf("webhook %s calls no Service", h.name)
	}
	port = "443"
	if h.Service.Port != nil {
		port = strconv.Itoa(int(*h.Service.Port))
	}
	return h.Service.Name + "." + h.Service.Namespace + ".svc", port, nil
}

func (h hook) path() string {
	if h.Service == nil || h.Service.Path == nil {
		return "/"
	}
	return *h.Service.Path
}

// trust returns the TLS configuration with which API servers verify the certificate.
func (h hook) trust() (*tls.Config, error) {
	host, _, err := h.address()
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(h.CABundle) {
		return nil, fmt.Errorf("webhook %s has no caBundle; cert-manager's cainjector puts one there, or managers with "+
			"--generate-certificates, or the chart's value certificates.caBundle", h.name)
	}
	return &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS13}, nil
}

func (e examination) hooks(ctx context.Context) ([]hook, error) {
	var mutating admissionv1.MutatingWebhookConfiguration
	var validating admissionv1.ValidatingWebhookConfiguration
	key := client.ObjectKey{Name: ownConfiguration}
	if err := errors.Join(e.Get(ctx, key, &mutating), e.Get(ctx, key, &validating)); err != nil {
		return nil, fmt.Errorf("API servers do not know the webhooks: %w", err)
	}
	var ready admissionv1.MutatingWebhookConfiguration
	if err := e.Get(ctx, client.ObjectKey{Name: readyRule}, &ready); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	var all []hook
	for _, w := range slices.Concat(mutating.Webhooks, ready.Webhooks) {
		all = append(all, hook{w.Name, w.ClientConfig})
	}
	for _, w := range validating.Webhooks {
		all = append(all, hook{w.Name, w.ClientConfig})
	}
	return all, nil
}

// certificate verifies the certificate as API servers do, once for each webhook: each has a caBundle of its own.
func (e examination) certificate(ctx context.Context) (string, error) {
	hooks, err := e.hooks(ctx)
	if err != nil {
		return "", err
	}
	var until time.Time
	for _, h := range hooks {
		connection, err := e.call(ctx, h)
		if err != nil {
			return "", fmt.Errorf("webhook %s: %w", h.name, err)
		}
		until = connection.ConnectionState().PeerCertificates[0].NotAfter
		_ = connection.Close() // nothing was written
	}
	return "valid until " + until.UTC().Format(time.RFC3339) + ", and signed by what the webhook configurations trust", nil
}

// call connects as an API server does. An error is about the network or about the certificate.
func (e examination) call(ctx context.Context, h hook) (*tls.Conn, error) {
	trust, err := h.trust()
	if err != nil {
		return nil, err
	}
	host, port, err := h.address()
	if err != nil {
		return nil, err
	}
	plain, err := e.dial(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	connection := tls.Client(plain, trust)
	if err := connection.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	return connection, nil
}

// webhooks sends each webhook an invented edit, in a namespace that is never managed.
func (e examination) webhooks(ctx context.Context) (string, error) {
	hooks, err := e.hooks(ctx)
	if err != nil {
		return "", err
	}
	for _, h := range hooks {
		switch err := e.answers(ctx, h); {
		case wantsCertificate(err):
			return "they answer API servers that show a certificate (--client-ca), and are not asked", nil
		case err != nil:
			return "", fmt.Errorf("webhook %s: %w", h.name, err)
		}
	}
	return fmt.Sprintf("all %d answer", len(hooks)), nil
}

// wantsCertificate reports whether managers refused to answer because the client showed no certificate. Neither this command nor an API
// server that proxies its requests has a client certificate for the managers. So the managers were reached. Whether API servers show a
// certificate when they call webhooks, this command cannot see; if they do not, there are events WebhookBypassed.
func wantsCertificate(err error) bool {
	return err != nil && strings.Contains(err.Error(), "tls: certificate required")
}

// hungUp reports whether the API server was connected when the other side closed the connection. Managers close it if the client shows no
// certificate. The TLS alert that says why is lost if the request is still being sent.
func hungUp(err error) bool {
	return strings.Contains(err.Error(), syscall.EPIPE.Error()) || strings.Contains(err.Error(), syscall.ECONNRESET.Error())
}

func (e examination) answers(ctx context.Context, h hook) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://webhook"+h.path(), bytes.NewReader(e.forged()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{
		DialTLSContext:    func(ctx context.Context, _, _ string) (net.Conn, error) { return e.call(ctx, h) },
		DisableKeepAlives: true,
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was read to its end
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	return decisionIn(body)
}

// forgedUID identifies the invented request, and so its answer.
const forgedUID = "stayput-check"

// forged returns the invented request. It is a dry run, so managers record nothing about it.
func (e examination) forged() []byte {
	dry, edit := true, runtime.RawExtension{Raw: []byte(`{"spec":{"template":{}}}`)}
	review := reviewv1.AdmissionReview{Request: &reviewv1.AdmissionRequest{
		UID: forgedUID, Operation: reviewv1.Update, Namespace: e.namespace, Name: ownDeployment, DryRun: &dry,
		Kind: metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Object: edit, OldObject: edit,
	}}
	review.SetGroupVersionKind(reviewv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := json.Marshal(review)
	if err != nil {
		panic(err) // impossible: the request consists of strings and booleans
	}
	return body
}

func decisionIn(body []byte) error {
	var review reviewv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil || review.Response == nil {
		return fmt.Errorf("its answer is no AdmissionReview: %.200s", body)
	}
	if review.Response.UID != forgedUID || !review.Response.Allowed {
		return fmt.Errorf("it does not allow an edit in a namespace that is never managed: %.200s", body)
	}
	return nil
}

// port has the API server itself call the managers, on the way on which it calls webhooks. A firewall may let pods reach the managers, but
// not the API server.
func (e examination) port(ctx context.Context) (string, error) {
	hooks, err := e.hooks(ctx)
	if err != nil {
		return "", err
	}
	if len(hooks) == 0 || hooks[0].Service == nil {
		return "", errors.New("the webhook configurations name no Service; install them again")
	}
	body, err := e.apiServer.Post().Namespace(e.namespace).Resource("services").Name("https:"+hooks[0].Service.Name+":webhook").
		SubResource("proxy").Suffix(hooks[0].path()).SetHeader("Content-Type", "application/json").Body(e.forged()).DoRaw(ctx)
	if said := errors.Join(err, errors.New(string(body))); wantsCertificate(said) || hungUp(said) {
		return "the API server reaches it", nil
	}
	if err != nil {
		return "", fmt.Errorf("the API server does not reach the managers' webhook port, so every update is native; let its firewall pass that port, "+
			"or use hostNetwork and a port it passes: %w: %.200s", err, body)
	}
	return "the API server reaches it", decisionIn(body)
}

// policies asks whether each ValidatingAdmissionPolicy exists and has a binding with the right action.
func (e examination) policies(ctx context.Context) (string, error) {
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	if err := e.List(ctx, &bindings); err != nil {
		return "", err
	}
	missing := map[string]bool{}
	for _, name := range ownPolicies {
		missing[name] = true
	}
	for _, binding := range bindings.Items {
		if slices.Contains(binding.Spec.ValidationActions, actionOf(binding.Spec.PolicyName)) {
			delete(missing, binding.Spec.PolicyName)
		}
	}
	for _, name := range ownPolicies {
		if err := e.Get(ctx, client.ObjectKey{Name: name}, &admissionv1.ValidatingAdmissionPolicy{}); client.IgnoreNotFound(err) != nil {
			return "", err
		} else if err != nil {
			missing[name] = true
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("not in force, or without the ValidatingAdmissionPolicyBinding they come with: %s; install them again",
			strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
	return fmt.Sprintf("all %d are in force", len(ownPolicies)), nil
}

// actionOf returns the action that the binding of a policy of Stayput must have. The policy that only warns is about edits that may be
// intended.
func actionOf(policy string) admissionv1.ValidationAction {
	if policy == ownAdvice {
		return admissionv1.Warn
	}
	return admissionv1.Deny
}

// mutatingPolicies asks whether the MutatingAdmissionPolicies are installed, or the webhook in their place, which does most of what they
// do.
func (e examination) mutatingPolicies(ctx context.Context) (string, error) {
	var bindings admissionv1.MutatingAdmissionPolicyBindingList
	err := e.List(ctx, &bindings, client.MatchingLabels{"app.kubernetes.io/part-of": "stayput"})
	switch {
	case meta.IsNoMatchError(err):
		return e.webhookInstead(ctx, "this cluster does not serve them, as Kubernetes 1.36 does")
	case err != nil:
		return "", err
	case len(bindings.Items) == 0:
		return e.webhookInstead(ctx, "though this cluster serves them; they open gates also when no manager lives")
	}
	for _, binding := range bindings.Items {
		if err := e.Get(ctx, client.ObjectKey{Name: binding.Spec.PolicyName}, &admissionv1.MutatingAdmissionPolicy{}); err != nil {
			return "", fmt.Errorf("what %s binds is missing: %w", binding.Name, err)
		}
	}
	return fmt.Sprintf("%d in force", len(bindings.Items)), nil
}

// webhookInstead asks whether the webhook is installed that shortens updates as the policies do. The question "webhooks" asks whether it
// answers.
func (e examination) webhookInstead(ctx context.Context, why string) (string, error) {
	err := e.Get(ctx, client.ObjectKey{Name: readyRule}, &admissionv1.MutatingWebhookConfiguration{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf(
			"none, %s, nor is there the webhook ready.stayput.dev in their place: pods are Ready a second or two late; install it", why)
	}
	return "none, " + why + "; managers are asked instead", err
}
