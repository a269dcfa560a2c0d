package cel

import (
	"context"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// refusals is a ValidatingAdmissionPolicy, compiled as compilePolicy in k8s.io/apiserver/pkg/admission/plugin/policy/validating does.
type refusals struct{ validating.Validator }

// compileRefusals compiles the policy of that name. Errors count as refusals, so that tests notice them.
func compileRefusals(t testing.TB, file, name string) refusals {
	t.Helper()
	spec := validatingSpec(t, file, name)
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range spec.Variables {
		variable := &validating.Variable{Name: v.Name, Expression: v.Expression}
		if result := compiler.CompileAndStoreVariable(variable, options, environment.StoredExpressions); result.Error != nil {
			t.Fatalf("variable %s: %v", v.Name, result.Error)
		}
	}
	var conditions, messages []plugincel.ExpressionAccessor
	for _, v := range spec.Validations {
		conditions = append(conditions, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		var message plugincel.ExpressionAccessor
		if v.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		messages = append(messages, message)
	}
	fails := admissionv1.Fail
	compiled := func(accessors []plugincel.ExpressionAccessor) plugincel.ConditionEvaluator {
		return compiler.CompileCondition(accessors, options, environment.StoredExpressions)
	}
	matcher := matchconditions.NewMatcher(compiled(accessors(spec.MatchConditions)), &fails, "policy", "validate", name)
	return refusals{validating.NewValidator(compiled(conditions), matcher, compiled(nil), compiled(messages), &fails, nil)}
}

func validatingSpec(t testing.TB, file, name string) admissionv1.ValidatingAdmissionPolicySpec {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		var read admissionv1.ValidatingAdmissionPolicy
		if err := yaml.Unmarshal([]byte(document), &read); err != nil {
			t.Fatal(err)
		}
		if read.Kind == "ValidatingAdmissionPolicy" && read.Name == name {
			return read.Spec
		}
	}
	t.Fatalf("%s has no policy %s", file, name)
	return admissionv1.ValidatingAdmissionPolicySpec{}
}

// of returns why the policy refuses a write, empty if it does not refuse it. The write is an UPDATE, or a CREATE if old is nil.
func (r refusals) of(old, sent runtime.Object, in *corev1.Namespace, by user.Info) string {
	return r.ofWrite(old, sent, in, by, false)
}

// ofDryRun returns the same for a write that is not stored.
func (r refusals) ofDryRun(old, sent runtime.Object, in *corev1.Namespace, by user.Info) string {
	return r.ofWrite(old, sent, in, by, true)
}

func (r refusals) ofWrite(old, sent runtime.Object, in *corev1.Namespace, by user.Info, dryRun bool) string {
	kind, operation := sent.GetObjectKind().GroupVersionKind(), admission.Update
	if old == nil {
		operation = admission.Create
	}
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind(kind))
	write := &admission.VersionedAttributes{
		Attributes:      admission.NewAttributesRecord(sent, old, kind, in.Name, "any", resource, "", operation, nil, dryRun, by),
		VersionedObject: sent, VersionedOldObject: old, VersionedKind: kind,
	}
	var refused []string
	for _, decision := range r.Validate(context.Background(), resource, write, nil, in, celconfig.RuntimeCELCostBudget, nil).Decisions {
		if decision.Action != validating.ActionAdmit {
			refused = append(refused, decision.Message)
		}
	}
	return strings.Join(refused, "; ")
}
