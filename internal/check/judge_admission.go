package check

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stayput/stayput/inplace"
)

// judgeAdmission asks about webhooks and policies of others that decide about an update in place. docs/how-to/policies.md says what each
// of their answers does. A check cannot know their answers, but it can tell which of them cannot answer.
func judgeAdmission(f Facts, v *verdict) string {
	var others []string
	for _, hook := range f.Hooks {
		if !meetsUpdates(hook) || !f.reaches(hook.NamespaceSelector) {
			continue
		}
		if others = append(others, hook.Configuration); slices.Contains(others[:len(others)-1], hook.Configuration) {
			others = others[:len(others)-1]
		}
		if service := serviceOf(hook); fails(hook) && service != "" && !f.Backends[service] {
			v.wrong(fmt.Sprintf("webhook %s of %s calls Service %s, which has no ready endpoint, and its failurePolicy is Fail: "+
				"the API server refuses what the webhook is to decide about, so updates end natively or not at all",
				hook.Name, hook.Configuration, service),
				fmt.Sprintf("start the pods of Service %s, or delete the webhook configuration %s if they are gone for good",
					service, hook.Configuration))
		}
	}
	slices.Sort(others)
	switch all := slices.Concat(others, f.Bindings); {
	case len(all) == 0:
		return "none decides about pods"
	default:
		return "they decide about pods too: " + listed(all)
	}
}

// meetsUpdates reports whether the webhook is called for a write by which pods are updated in place.
func meetsUpdates(hook ForeignHook) bool { return slices.ContainsFunc(hook.Rules, meets) }

func meets(rule admissionv1.RuleWithOperations) bool {
	names := func(of []string, wanted ...string) bool {
		return slices.ContainsFunc(of, func(each string) bool { return slices.Contains(wanted, each) })
	}
	pods := names(rule.APIGroups, "", "*") && names(rule.Resources, "pods", "pods/*", "pods/status", "pods/resize", "*", "*/*")
	revisions := names(rule.APIGroups, "apps", "*") && names(rule.Resources, "replicasets", "controllerrevisions", "*", "*/*")
	written := slices.ContainsFunc(rule.Operations, func(each admissionv1.OperationType) bool {
		return each == admissionv1.Create || each == admissionv1.Update || each == admissionv1.OperationAll
	})
	return (pods || revisions) && written
}

// reaches reports whether the selector selects a namespace in which pods are updated in place. While no namespace is labelled, each one may
// be labelled next, apart from those that never are.
func (f Facts) reaches(selector *metav1.LabelSelector) bool {
	selects, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || selector == nil || len(f.Namespaces) == 0 {
		return true
	}
	labelled := slices.ContainsFunc(f.Namespaces, f.managed)
	return slices.ContainsFunc(f.Namespaces, func(namespace corev1.Namespace) bool {
		mayBe := namespace.Name != f.Namespace && !strings.HasPrefix(namespace.Name, "kube-")
		return (f.managed(namespace) || !labelled && mayBe) && selects.Matches(labels.Set(namespace.Labels))
	})
}

// managed reports whether Stayput manages the namespace.
func (f Facts) managed(namespace corev1.Namespace) bool {
	return inplace.NamespaceModes.Has(namespace.Labels[inplace.LabelUpdate]) && !slices.Contains(f.excluded(), namespace.Name)
}

func fails(hook ForeignHook) bool {
	return hook.FailurePolicy == nil || *hook.FailurePolicy == admissionv1.Fail
}

// serviceOf returns the Service that a webhook calls, as namespace/name; empty if it calls a URL.
func serviceOf(hook ForeignHook) string {
	if hook.ClientConfig.Service == nil {
		return ""
	}
	return hook.ClientConfig.Service.Namespace + "/" + hook.ClientConfig.Service.Name
}
