package manifests

import (
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// What the policy does is compared with inplace.StoredConditions in manifests/cel.

func TestReadyIsHarmless(t *testing.T) {
	spec := readyPolicy(t).Spec
	if spec.FailurePolicy == nil || *spec.FailurePolicy != admissionv1.Ignore {
		t.Error("failurePolicy is not Ignore: kubelets could not report")
	}
	for _, c := range calls(t) {
		if path(c) == "/mutate-pod" && !reflect.DeepEqual(spec.MatchConstraints.NamespaceSelector, c.NamespaceSelector) {
			t.Error("its namespaces are not those whose pods are born with a gate")
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
