package check

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"
	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/inplace"
)

var appsGroup = appsv1.SchemeGroupVersion

// configurations reads Stayput's webhook configurations.
func (r Reader) configurations(ctx context.Context, f *Facts) error {
	var mutating admissionv1.MutatingWebhookConfiguration
	var validating admissionv1.ValidatingWebhookConfiguration
	found, mutatingErr := r.find(ctx, "", inplace.WebhookConfigurations, &mutating)
	if found {
		f.Mutating = &mutating
	}
	found, validatingErr := r.find(ctx, "", inplace.WebhookConfigurations, &validating)
	if found {
		f.Validating = &validating
	}
	return errors.Join(mutatingErr, validatingErr)
}

// validatingPolicies reads Stayput's ValidatingAdmissionPolicies, and those of others that decide about updates.
func (r Reader) validatingPolicies(ctx context.Context, f *Facts) error {
	var policies admissionv1.ValidatingAdmissionPolicyList
	if err := r.List(ctx, &policies); err != nil {
		return err
	}
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	if err := r.List(ctx, &bindings); err != nil {
		return err
	}
	f.PolicyBindings = bindings.Items
	for _, policy := range policies.Items {
		bound := func(b admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Spec.PolicyName == policy.Name }
		f.PolicyNames = append(f.PolicyNames, policy.Name)
		if slices.ContainsFunc(bindings.Items, bound) {
			f.addPolicy(policy.ObjectMeta, policy.Spec.MatchConstraints)
		}
	}
	return nil
}

// mutatingPolicies reads the MutatingAdmissionPolicies that decide about updates. Stayput has none, and not all clusters serve them.
func (r Reader) mutatingPolicies(ctx context.Context, f *Facts) error {
	var policies admissionv1.MutatingAdmissionPolicyList
	if err := r.List(ctx, &policies); meta.IsNoMatchError(err) {
		return nil
	} else if err != nil {
		return err
	}
	for _, policy := range policies.Items {
		f.addPolicy(policy.ObjectMeta, policy.Spec.MatchConstraints)
	}
	return nil
}

// addPolicy remembers a policy of others that decides about updates.
func (f *Facts) addPolicy(policy metav1.ObjectMeta, constraints *admissionv1.MatchResources) {
	own := policy.Labels[partOf] == application || slices.Contains(Policies, policy.Name)
	if own || constraints == nil || !f.reaches(constraints.NamespaceSelector) {
		return
	}
	if slices.ContainsFunc(constraints.ResourceRules, func(rule admissionv1.NamedRuleWithOperations) bool {
		return meets(rule.RuleWithOperations)
	}) {
		f.Bindings = append(f.Bindings, policy.Name)
	}
}

// rights asks which of the rights that the managers need their service account does not have.
func (r Reader) rights(ctx context.Context, f *Facts) error {
	if err := r.others(ctx, f); err != nil {
		return err
	}
	if f.Manager == nil {
		return nil
	}
	account := f.Manager.Spec.Template.Spec.ServiceAccountName
	rights := needed()
	denied := make([]string, len(rights))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(10)
	for i, each := range rights {
		group.Go(func() error {
			review := each.review(r.Namespace, account)
			err := r.Create(ctx, review)
			if err == nil && !review.Status.Allowed {
				denied[i] = each.String()
			}
			return err
		})
	}
	err := group.Wait()
	f.Denied = slices.DeleteFunc(denied, func(each string) bool { return each == "" })
	return err
}

// others reads what else belongs to an installation.
func (r Reader) others(ctx context.Context, f *Facts) (err error) {
	if f.Fallbacks, err = r.find(ctx, r.Namespace, inplace.Fallbacks, &corev1.ConfigMap{}); err != nil {
		return err
	}
	for _, name := range flowSchemas {
		found, err := r.find(ctx, "", name, &flowcontrolv1.FlowSchema{})
		if err != nil {
			return err
		}
		if found {
			f.Schemas = append(f.Schemas, name)
		}
	}
	return nil
}

// review asks whether the service account has the right.
func (r right) review(namespace, account string) *authorizationv1.SubjectAccessReview {
	attributes := authorizationv1.ResourceAttributes{Group: r.group, Version: "*", Resource: r.resource, Subresource: r.subresource,
		Verb: r.verb, Name: r.name}
	if r.own {
		attributes.Namespace = namespace
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &attributes,
		User:               fmt.Sprintf("system:serviceaccount:%s:%s", namespace, account),
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}}
}

// String returns the right in words.
func (r right) String() string {
	resource := r.resource
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	if r.name != "" {
		resource += " " + r.name
	}
	return r.verb + " " + resource
}

// webhooks reads what the webhooks call, and has the API server call each of them.
func (r Reader) webhooks(ctx context.Context, f *Facts) error {
	hooks := f.hooks()
	if len(hooks) == 0 || hooks[0].Service == nil {
		return nil
	}
	var service corev1.Service
	found, err := r.find(ctx, hooks[0].Service.Namespace, hooks[0].Service.Name, &service)
	if err != nil || !found {
		return err
	}
	f.Service = &service
	if f.Endpoints, err = r.hasEndpoint(ctx, *hooks[0].Service); err != nil || !f.Endpoints {
		return err
	}
	f.Answers, f.Served = make([]Answer, len(hooks)), make([]Served, 0, len(hooks))
	var calls sync.WaitGroup
	for i, hook := range hooks {
		calls.Go(func() { f.Answers[i] = Answer{hook.Name, r.answer(ctx, hook)} })
	}
	calls.Wait()
	for _, answer := range f.Answers {
		if apierrors.IsForbidden(answer.Err) { // the API server has not asked a manager
			return answer.Err
		}
	}
	if r.Dial != nil {
		for _, hook := range hooks {
			f.Served = append(f.Served, r.served(ctx, hook))
		}
	}
	return nil
}

// answer has the API server itself call the webhook, on the way on which it calls webhooks. It sends an invented edit, in a namespace that
// is never managed. A firewall may let pods reach the managers, but not the API server.
func (r Reader) answer(ctx context.Context, hook Hook) error {
	body, err := r.Proxy.Post().Namespace(r.Namespace).Resource("services").Name("https:"+hook.Service.Name+":webhook").
		SubResource("proxy").Suffix(hook.Path()).SetHeader("Content-Type", "application/json").Body(r.forged()).DoRaw(ctx)
	if said := errors.Join(err, errors.New(string(body))); wantsCertificate(said) || hungUp(said) {
		return nil
	}
	if err != nil {
		return saying(err, body)
	}
	return decisionIn(body)
}

// saying returns the error with what the body says: a Status of the API server itself, or a text of who was asked.
func saying(err error, body []byte) error {
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return fmt.Errorf("%w: %.200s", err, bytes.TrimSpace(body))
}

// wantsCertificate reports whether managers refused to answer because the client showed no certificate (--client-ca). An API server that
// proxies requests shows none. So the managers were reached. Whether API servers show one when they call webhooks, judgePassing says.
func wantsCertificate(err error) bool {
	return strings.Contains(err.Error(), "tls: certificate required")
}

// hungUp reports whether the API server was connected when the other side closed the connection. Managers close it if the client shows no
// certificate. The TLS alert that says why is lost if the request is still being sent: its writer finds the connection closed.
func hungUp(err error) bool {
	for _, closed := range []error{syscall.EPIPE, syscall.ECONNRESET, net.ErrClosed} {
		if strings.Contains(err.Error(), closed.Error()) {
			return true
		}
	}
	return false
}

// forgedUID identifies the invented request, and so its answer.
const forgedUID = "stayput-check"

// forged returns the invented request. It is a dry run, so managers record nothing about it.
func (r Reader) forged() []byte {
	edit := runtime.RawExtension{Raw: []byte(`{"spec":{"template":{}}}`)}
	review := reviewv1.AdmissionReview{Request: &reviewv1.AdmissionRequest{
		UID: forgedUID, Operation: reviewv1.Update, Namespace: r.Namespace, Name: Deployment, DryRun: ptr.To(true),
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
	if review.Response.UID != forgedUID {
		return fmt.Errorf("its answer is that of another request: %.200s", body)
	}
	if !review.Response.Allowed {
		return fmt.Errorf("it does not allow an edit in a namespace that is never managed: %s", whyDenied(review.Response))
	}
	return nil
}

func whyDenied(response *reviewv1.AdmissionResponse) string {
	if response.Result == nil || response.Result.Message == "" {
		return "it does not say why"
	}
	return fmt.Sprintf("%.500s", response.Result.Message)
}

// served returns the certificate that managers show. Judge verifies it.
func (r Reader) served(ctx context.Context, hook Hook) Served {
	host, port := hook.Address()
	plain, err := r.Dial(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return Served{Hook: hook.Name, Err: err}
	}
	defer func() { _ = plain.Close() }() // nothing was written
	connection := tls.Client(plain, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS13, InsecureSkipVerify: true})
	err = connection.HandshakeContext(ctx)
	return Served{hook.Name, connection.ConnectionState().PeerCertificates, err}
}

// passing tries a write that must pass through a webhook, and reads which native writes did not.
func (r Reader) passing(ctx context.Context, f *Facts) error {
	if r.DryRuns {
		r.tryWrite(ctx, f)
	}
	var events eventsv1.EventList
	if err := r.List(ctx, &events, client.MatchingFields{"reason": report.EventBypassed}); err != nil {
		return err
	}
	for _, event := range events.Items {
		about := event.Regarding
		f.Bypassed = append(f.Bypassed, fmt.Sprintf("%s %s/%s: %s", about.Kind, about.Namespace, about.Name, event.Note))
	}
	return nil
}

// tryWrite creates, in a dry run, a Deployment as it is copied from another one. The webhook edits.stayput.dev takes the annotation away
// that says what the last edit did. It tries one managed namespace after another until one accepts the Deployment.
func (r Reader) tryWrite(ctx context.Context, f *Facts) {
	for _, namespace := range f.Namespaces {
		if !f.managed(namespace) || namespace.DeletionTimestamp != nil {
			continue
		}
		copied := copiedIn(namespace.Name)
		err := r.Create(ctx, copied, client.DryRunAll)
		_, left := copied.Annotations[inplace.AnnotationDecision]
		if f.Write = (DryRun{namespace.Name, err == nil && !left, err}); err == nil {
			return
		}
	}
}

func copiedIn(namespace string) *appsv1.Deployment {
	app := map[string]string{"app.kubernetes.io/name": "stayput-check"}
	pod := mounting(namespace).Spec
	pod.Volumes, pod.Containers[0].VolumeMounts = nil, nil
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stayput-check", Labels: app,
			Annotations: map[string]string{inplace.AnnotationDecision: "stayput check"}},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: pod}},
	}
}
