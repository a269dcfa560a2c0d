package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/stayput/stayput/inplace"
)

// Hook is a mutating or validating webhook of Stayput, with what both have in common.
type Hook struct {
	// Name says which webhook it is, and of which kind.
	Name string
	admissionv1.WebhookClientConfig
	// injected is the annotation by which cert-manager's cainjector puts a CA into the configuration.
	injected string
}

// injectFrom is that annotation. Its value is the namespace and name of a Certificate.
const injectFrom = "cert-manager.io/inject-ca-from"

// hooks returns Stayput's webhooks.
func (f InstallationFacts) hooks() (all []Hook) {
	if f.Mutating != nil {
		for _, each := range f.Mutating.Webhooks {
			all = append(all, Hook{"mutating webhook " + each.Name, each.ClientConfig, f.Mutating.Annotations[injectFrom]})
		}
	}
	if f.Validating != nil {
		for _, each := range f.Validating.Webhooks {
			all = append(all, Hook{"validating webhook " + each.Name, each.ClientConfig, f.Validating.Annotations[injectFrom]})
		}
	}
	return all
}

// Address returns the host and the port at which API servers call the webhook.
func (h Hook) Address() (host, port string) {
	if h.Service == nil {
		return "", ""
	}
	port = "443"
	if h.Service.Port != nil {
		port = strconv.Itoa(int(*h.Service.Port))
	}
	return h.Service.Name + "." + h.Service.Namespace + ".svc", port
}

// Path returns the path at which API servers call the webhook.
func (h Hook) Path() string {
	if h.Service == nil || h.Service.Path == nil {
		return "/"
	}
	return *h.Service.Path
}

func judgeWebhooks(f Facts, v *verdict) string {
	f.judgeConfigurations(v)
	if len(v.findings) > 0 || !f.managersRun() {
		return "the API server knows them" // that no manager answers, judgeManagers says
	}
	if f.Service == nil {
		v.wrong(fmt.Sprintf("the webhooks call a Service that does not exist, so every update is native: %s", f.service()), again)
		return ""
	}
	if !f.Endpoints {
		v.wrong(fmt.Sprintf("Service %s has no ready endpoint, so no manager is asked and every update is native", f.service()),
			fmt.Sprintf("let the Service select the managers' pods (%s): %s", managerSelector, again))
		return ""
	}
	for _, answer := range f.Answers {
		if answer.Err != nil {
			v.wrong(fmt.Sprintf("%s does not answer the API server, so updates are native: %v", answer.Hook, answer.Err), f.remedyOf(answer.Err))
			return ""
		}
	}
	return fmt.Sprintf("the API server reaches the managers, and all %d answer", len(f.Answers))
}

// remedyOf returns what mends that a webhook does not answer. If a manager has answered, or its port is closed since it is not ready, no
// firewall is in between.
func (f Facts) remedyOf(answer error) string {
	says := func(text string) bool { return strings.Contains(answer.Error(), text) }
	switch {
	case says("404"):
		return "the webhook configurations are of another version than the managers: " + again
	case says("no endpoints available"), says("connection refused"), f.Manager.Status.UnavailableReplicas > 0:
		return fmt.Sprintf("a manager is not ready: its log says what it waits for: kubectl -n %s logs deployment/%s --all-pods. "+
			"If it has just started or ended, check again in a minute", f.Namespace, Deployment)
	}
	return "let the API server through to the managers' webhook port (10250) in firewalls, security groups and NetworkPolicies, " +
		"or use hostNetwork and a port that it reaches: docs/how-to/platforms.md"
}

// judgeConfigurations asks whether API servers know each webhook.
func (f Facts) judgeConfigurations(v *verdict) {
	var mutating, validating []string
	if f.Mutating == nil {
		v.wrong(fmt.Sprintf("there is no MutatingWebhookConfiguration %s, so every update is native", inplace.WebhookConfigurations), again)
	} else {
		for _, each := range f.Mutating.Webhooks {
			mutating = append(mutating, each.Name)
		}
		v.complete("MutatingWebhookConfiguration", mutatingHooks, mutating)
	}
	if f.Validating == nil {
		v.wrong(fmt.Sprintf("there is no ValidatingWebhookConfiguration %s, so nothing holds native writes",
			inplace.WebhookConfigurations), again)
	} else {
		for _, each := range f.Validating.Webhooks {
			validating = append(validating, each.Name)
		}
		v.complete("ValidatingWebhookConfiguration", validatingHooks, validating)
	}
	for _, hook := range f.hooks() {
		if hook.Service == nil || hook.Service.Namespace != f.Namespace {
			v.wrong(fmt.Sprintf("%s calls no Service of namespace %s, where the managers are", hook.Name, f.Namespace), again)
			return
		}
	}
}

func (v *verdict) complete(kind string, wanted, found []string) {
	missing := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return slices.Contains(found, name) })
	if len(missing) > 0 {
		v.wrong(fmt.Sprintf("%s %s lacks %s, so updates are not held", kind, inplace.WebhookConfigurations, listed(missing)), again)
	}
}

// service returns the Service that the webhooks call, as namespace/name.
func (f Facts) service() string {
	for _, hook := range f.hooks() {
		if hook.Service != nil {
			return hook.Service.Namespace + "/" + hook.Service.Name
		}
	}
	return ""
}

// judgePassing asks whether writes pass through the webhooks: those of this check, and those of native controllers.
func judgePassing(f Facts, v *verdict) string {
	asked := f.Write.Namespace != "" && f.managersRun() && f.Mutating != nil
	switch {
	case asked && f.Write.Err != nil:
		v.add(Unchecked, fmt.Sprintf("a dry run in namespace %s was refused: %v", f.Write.Namespace, f.Write.Err),
			"let a user run the check who may create Deployments there, or label one more namespace, in which no policy refuses it")
	case asked && !f.Write.Answered:
		v.wrong(fmt.Sprintf("a dry run in namespace %s passed without an answer of webhook edits.stayput.dev, so updates are native",
			f.Write.Namespace), "mend the certificate and the webhooks above, if they are wrong; otherwise the API server's log says why, "+
			"in lines with failed calling webhook")
	}
	if len(f.Bypassed) > 0 {
		v.less(fmt.Sprintf("native writes passed that were to be held, in the last hour: %s", listed(f.Bypassed)),
			"if this goes on while all else is right, kube-controller-manager runs without "+credentials+
				", or managers answer too late: give them CPU")
	}
	if !asked {
		return ""
	}
	return fmt.Sprintf("a dry run in namespace %s passed through the webhooks", f.Write.Namespace)
}
