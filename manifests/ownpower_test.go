package manifests

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/stayput/stayput/inplace/readiness"
)

// TestOwnPowerConcernsNobodyElse checks that these policies match only requests of Stayput. Only then may they fail closed.
func TestOwnPowerConcernsNobodyElse(t *testing.T) {
	for _, policy := range ownPower(t) {
		spec := policy.Spec
		if spec.FailurePolicy == nil || *spec.FailurePolicy != admissionv1.Fail {
			t.Errorf("%s: failurePolicy is not Fail", policy.Name)
		}
		const byStayput = `request.userInfo.username == "system:serviceaccount:stayput-system:stayput"`
		if len(spec.MatchConditions) != 1 || spec.MatchConditions[0].Expression != byStayput {
			t.Errorf("%s: its only matchCondition must be Stayput's user name: %v", policy.Name, spec.MatchConditions)
		}
	}
}

// TestOwnPowerReadsTheMark checks that the policies look for text that the program writes. CEL cannot decode JSON, so a policy looks for
// pieces of the mark's text.
func TestOwnPowerReadsTheMark(t *testing.T) {
	mark := readiness.Move{Hash: "h", Generation: 7,
		Containers: map[string]readiness.MovedContainer{"app": {Image: "shop/app:2", ImageID: "sha256:1"}},
		Back:       map[string]string{"app": "shop/app:1"}}.String()
	if start := `{"hash":"h"`; !strings.HasPrefix(mark, start) {
		t.Errorf("the mark %s does not begin with %s", mark, start)
	}
	if piece := `}},"back":{"app":"shop/app:1"}`; !strings.Contains(mark, piece) {
		t.Errorf("the mark %s does not contain %s", mark, piece)
	}
	resize := readiness.Move{Hash: "h", Resize: readiness.Resize{"app": {}}}.String()
	if piece := `"app":{"from":{`; !strings.HasPrefix(resize, `{"hash":"h"`) || !strings.Contains(resize, piece) {
		t.Errorf("the mark %s does not contain %s", resize, piece)
	}
	for _, expression := range []string{
		`'{"hash":"' + `, `'}},"back":{'`, `',"' + is.name + '":"' + is.image + '",'`, `'"' + c.name + '":{"from":{'`,
	} {
		if !strings.Contains(read(t, "base/own-power.yaml"), expression) {
			t.Errorf("base/own-power.yaml does not look for %s", expression)
		}
	}
}

func ownPower(t *testing.T) []admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	return policies(t, "base/own-power.yaml")
}

func policies(t *testing.T, file string) []admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	var found []admissionv1.ValidatingAdmissionPolicy
	for document := range strings.SplitSeq(read(t, file), "\n---\n") {
		var policy admissionv1.ValidatingAdmissionPolicy
		decode(t, document, &policy)
		if policy.Kind == "ValidatingAdmissionPolicy" {
			found = append(found, policy)
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no policies", file)
	}
	return found
}
