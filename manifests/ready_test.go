package manifests

import (
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// Tests in manifests/cel compare what the policy stores, and for which writes the webhook is called, with readiness.StoredConditions.

// TestReadyIsOneRule checks that the policy and the webhook in its place are about the same writes of the same pods.
func TestReadyIsOneRule(t *testing.T) {
	policy, hook := readyPolicy(t).Spec, readyWebhook(t)
	if !reflect.DeepEqual(policy.MatchConstraints.NamespaceSelector, hook.NamespaceSelector) {
		t.Error("they are about different namespaces")
	}
	if len(hook.Rules) != 1 || !reflect.DeepEqual(policy.MatchConstraints.ResourceRules[0].RuleWithOperations, hook.Rules[0]) {
		t.Error("they are about different writes")
	}
	for i, condition := range policy.MatchConditions {
		if condition != hook.MatchConditions[i] {
			t.Errorf("the policy's condition %s is\n%s\nand the webhook's is\n%s",
				condition.Name, condition.Expression, hook.MatchConditions[i].Expression)
		}
	}
}

func readyWebhook(t *testing.T) admissionv1.MutatingWebhook {
	t.Helper()
	var configuration admissionv1.MutatingWebhookConfiguration
	decode(t, read(t, "ready-webhook/webhook.yaml"), &configuration)
	return configuration.Webhooks[0]
}

func TestReadyIsHarmless(t *testing.T) {
	spec := readyPolicy(t).Spec
	if spec.FailurePolicy == nil || *spec.FailurePolicy != admissionv1.Ignore {
		t.Error("failurePolicy is not Ignore: kubelets could not report")
	}
	for _, c := range calls(t) {
		if path(c) == "/mutate-pod" && !reflect.DeepEqual(spec.MatchConstraints.NamespaceSelector, c.NamespaceSelector) {
			t.Error("its namespaces are not those whose pods are created with a gate")
		}
	}
}

func readyPolicy(t *testing.T) admissionv1.MutatingAdmissionPolicy {
	t.Helper()
	var policy admissionv1.MutatingAdmissionPolicy
	document, _, _ := strings.Cut(read(t, "ready/policy.yaml"), "\n---\n")
	decode(t, document, &policy)
	return policy
}
