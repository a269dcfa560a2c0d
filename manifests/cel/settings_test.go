package cel

import (
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// TestLabelPoliciesCompile: one that does not would let every value pass, as failurePolicy is Ignore.
func TestLabelPoliciesCompile(t *testing.T) {
	raw, err := os.ReadFile("../base/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	compiled := 0
	for _, document := range strings.Split(string(raw), "\n---\n") {
		var policy admissionv1.ValidatingAdmissionPolicy
		if err := yaml.Unmarshal([]byte(document), &policy); err != nil {
			t.Fatal(err)
		}
		compiled += len(policy.Spec.Validations)
		compileValidations(t, policy)
	}
	if compiled < 6 {
		t.Errorf("only %d validations were found", compiled)
	}
}

func compileValidations(t *testing.T, policy admissionv1.ValidatingAdmissionPolicy) {
	t.Helper()
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range policy.Spec.Variables {
		variable := &validating.Variable{Name: v.Name, Expression: v.Expression}
		if result := compiler.CompileAndStoreVariable(variable, options, environment.StoredExpressions); result.Error != nil {
			t.Errorf("%s, variable %s: %v", policy.Name, v.Name, result.Error)
		}
	}
	expressions := []plugincel.ExpressionAccessor{}
	for i := range policy.Spec.MatchConditions {
		expressions = append(expressions, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
	}
	for _, v := range policy.Spec.Validations {
		expressions = append(expressions, &validating.ValidationCondition{Expression: v.Expression})
		if v.MessageExpression != "" {
			expressions = append(expressions, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
		}
	}
	for _, expression := range expressions {
		if result := compiler.CompileCELExpression(expression, options, environment.StoredExpressions); result.Error != nil {
			t.Errorf("%s: %v", policy.Name, result.Error)
		}
	}
}
