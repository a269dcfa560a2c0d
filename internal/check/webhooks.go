package check

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// hook is what a mutating and a validating webhook have in common. Its name begins with its kind.
type hook struct {
	name     string
	service  admissionv1.ServiceReference
	caBundle []byte
}

func (r *run) readWebhooks(ctx context.Context) (string, error) {
	add := func(name string, config admissionv1.WebhookClientConfig) {
		if config.Service != nil {
			r.hooks = append(r.hooks, hook{name, *config.Service, config.CABundle})
		}
	}
	var mutates admissionv1.MutatingWebhookConfiguration
	_, mutatesErr := r.find(ctx, "", inplace.WebhookConfigurations, &mutates)
	for _, each := range mutates.Webhooks {
		add(mutating+each.Name, each.ClientConfig)
	}
	var validates admissionv1.ValidatingWebhookConfiguration
	_, validatesErr := r.find(ctx, "", inplace.WebhookConfigurations, &validates)
	for _, each := range validates.Webhooks {
		add(validating+each.Name, each.ClientConfig)
	}
	return "", cmp.Or(mutatesErr, validatesErr)
}

// certificate asks whether the cluster can issue the webhooks' certificate, and whether API servers have a CA to trust it by.
func (r *run) certificate(context.Context) (string, error) {
	_, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"})
	if meta.IsNoMatchError(err) && !r.installed() {
		r.add(Warning, "this cluster does not have cert-manager, which issues the webhooks' certificate",
			"install cert-manager (https://cert-manager.io/docs/installation/), or give the chart "+
				"a certificate of your own: certificates.secretName and certificates.caBundle")
	}
	if at := slices.IndexFunc(r.hooks, func(of hook) bool { return len(of.caBundle) == 0 }); at >= 0 {
		r.add(Error, r.hooks[at].name+" has no caBundle, so the API server trusts no manager and updates are native",
			"see that cert-manager's cainjector runs, which writes it (kubectl get pods -A -l app.kubernetes.io/name=cainjector). "+
				"For a certificate of your own, set certificates.caBundle of the chart")
	}
	return "no webhook waits for its CA", utilerrors.FilterOut(err, meta.IsNoMatchError)
}

// webhooks asks whether the API server knows each webhook, and reaches the managers.
func (r *run) webhooks(ctx context.Context) (string, error) {
	missing := slices.DeleteFunc(slices.Clone(hookNames), func(name string) bool {
		return slices.ContainsFunc(r.hooks, func(hook hook) bool { return hook.name == name })
	})
	if len(missing) > 0 {
		r.add(Error, fmt.Sprintf("the webhook configurations %s lack %s, so updates are native or are not held",
			inplace.WebhookConfigurations, strings.Join(missing, ", ")), again)
	}
	if len(missing) > 0 || !r.managersRun() {
		return "the API server knows them", nil
	}
	for _, hook := range r.hooks {
		err := r.call(ctx, hook)
		if apierrors.IsForbidden(err) { // the API server has not asked a manager
			return "", err
		}
		if err != nil {
			r.add(Error, fmt.Sprintf("%s does not answer the API server, so updates are native: %v", hook.name, err), remedyOf(err))
			return "", nil
		}
	}
	return fmt.Sprintf("the API server reaches the managers, and all %d answer", len(r.hooks)), nil
}

// call has the API server itself call the webhook, about an invented edit in a namespace that is never managed: a firewall may let pods
// reach the managers, but not the API server. The edit is a dry run, so managers record nothing about it.
func (r *run) call(ctx context.Context, hook hook) error {
	const edit = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"stayput-check","operation":"UPDATE",
		"dryRun":true,"namespace":%q,"name":"stayput","kind":{"group":"apps","version":"v1","kind":"Deployment"},
		"object":{"spec":{"template":{}}},"oldObject":{"spec":{"template":{}}}}}`
	body, err := r.Raw.Post().Namespace(hook.service.Namespace).Resource("services").Name("https:"+hook.service.Name+":webhook").
		SubResource("proxy").Suffix(ptr.Deref(hook.service.Path, "/")).SetHeader("Content-Type", "application/json").
		Body(fmt.Appendf(nil, edit, r.Namespace)).Timeout(10 * time.Second).DoRaw(ctx)
	if err != nil {
		status := metav1.Status{Message: string(body)} // a text, unless the API server itself has answered
		_ = json.Unmarshal(body, &status)
		return utilerrors.FilterOut(fmt.Errorf("%w: %.200s", err, strings.TrimSpace(status.Message)), hungUp)
	}
	if !bytes.Contains(body, []byte(`"uid":"stayput-check","allowed":true`)) {
		return fmt.Errorf("it does not allow an edit in a namespace that is never managed: %.500s", body)
	}
	return nil
}

// hungUp reports whether managers were reached, and refused a client without a certificate (--client-ca). An API server that proxies
// requests shows none. The TLS alert that says so is lost if the request is still being sent when the connection is closed.
func hungUp(err error) bool {
	said := []string{"tls: certificate required", "broken pipe", "connection reset by peer", "use of closed network connection"}
	return slices.ContainsFunc(said, func(each string) bool { return strings.Contains(err.Error(), each) })
}

// remedyOf returns what mends that a webhook does not answer. If the API server or a manager says why, no firewall is in between.
func remedyOf(answer error) string {
	switch says := answer.Error(); {
	case strings.Contains(says, "404 page"):
		return "the webhook configurations are of another version than the managers: " + again
	case strings.Contains(says, "no endpoints available"), apierrors.IsNotFound(answer):
		return "let the Service select the managers' pods: " + again + ". If a manager has just started or ended, check again in a minute"
	}
	return "let the API server through to the managers' webhook port (10250) in firewalls, security groups and NetworkPolicies, " +
		"or use hostNetwork and a port that it reaches: docs/how-to/platforms.md. If a manager has just ended, check again in a minute"
}

// objects asks for objects without which managers may write too much, or cannot hand an update over. A policy's binding has its name.
func (r *run) objects(ctx context.Context) (string, error) {
	wanted := []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: inplace.Fallbacks}}}
	for _, name := range Policies {
		meta := metav1.ObjectMeta{Name: name}
		wanted = append(wanted, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta},
			&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta})
	}
	var missing []string
	for _, object := range wanted {
		called := strings.TrimPrefix(fmt.Sprintf("%T %s", object, object.GetName()), "*v1.")
		found, err := r.find(ctx, object.GetNamespace(), object.GetName(), object)
		if err != nil {
			return "", err
		}
		if !found {
			missing = append(missing, called)
		}
	}
	if len(missing) > 0 {
		r.add(Error, "missing: "+strings.Join(missing, ", ")+". Policies bound what Stayput's service account may write, and refuse wrong "+
			"settings; the ConfigMap keeps which updates were handed over", again)
	}
	return fmt.Sprintf("all %d policies are in force, and fallbacks have their ConfigMap", len(Policies)), nil
}

// writes creates a Deployment in a dry run, as a copy of another one. Webhook edits.stayput.dev removes the annotation that says what the
// last edit did. It tries one labelled namespace after the other until one accepts the Deployment.
func (r *run) writes(ctx context.Context) (says string, err error) {
	if !r.DryRuns || !r.managersRun() {
		return "", nil
	}
	for _, namespace := range r.namespaces {
		if r.excludes(namespace.Name) || namespace.DeletionTimestamp != nil {
			continue
		}
		copied := copiedIn(namespace.Name)
		if err = r.Create(ctx, copied, client.DryRunAll); err != nil {
			err = fmt.Errorf("a dry run in namespace %s was refused, so label one more, in which no policy refuses it: %w", namespace.Name, err)
			continue
		}
		if _, left := copied.Annotations[inplace.AnnotationDecision]; left {
			r.unanswered(namespace.Name)
		}
		return fmt.Sprintf("a dry run in namespace %s passed through the webhooks", namespace.Name), nil
	}
	return "", err
}

// unanswered adds a finding, unless one about the webhooks or the certificate says why.
func (r *run) unanswered(namespace string) {
	if slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return f.Level == Error && (f.About == "webhooks" || f.About == "certificate")
	}) {
		return
	}
	r.add(Error, fmt.Sprintf("a dry run in namespace %s passed without an answer of webhook edits.stayput.dev, so updates are native. If the "+
		"API server reaches the managers, it does not trust their certificate, or calls another port", namespace),
		"let caBundle in the webhook configurations be the CA that signed the certificate (certificates.caBundle, or cainjector), and "+
			"the port there be that of the Service. The API server's log says more, in lines with failed calling webhook")
}

func copiedIn(namespace string) *appsv1.Deployment {
	app := map[string]string{"app.kubernetes.io/name": "stayput-check"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stayput-check", Labels: app,
			Annotations: map[string]string{inplace.AnnotationDecision: "stayput check"}},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "check", Image: "registry.example/image:v1"}}}}},
	}
}
