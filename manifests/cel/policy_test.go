package cel

import (
	"context"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// policy is a MutatingAdmissionPolicy with one mutation, compiled as in k8s.io/apiserver/pkg/admission/plugin/policy/mutating.
type policy struct {
	compiler *plugincel.CompositedCompiler
	matcher  matchconditions.Matcher
	patcher  patch.Patcher
	types    managedfields.TypeConverter
}

func compile(t *testing.T, file string) *policy {
	t.Helper()
	spec := readSpec(t, file)
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
	evaluator := compiler.CompileCondition(accessors(spec.MatchConditions), options, environment.StoredExpressions)
	options.HasPatchTypes = true
	mutation := &patch.ApplyConfigurationCondition{Expression: spec.Mutations[0].ApplyConfiguration.Expression}
	return &policy{
		compiler: compiler,
		matcher:  matchconditions.NewMatcher(evaluator, spec.FailurePolicy, "policy", "validate", file),
		patcher:  patch.NewApplyConfigurationPatcher(compiler.CompileMutatingEvaluator(mutation, options, environment.StoredExpressions)),
		types:    applyconfigurations.NewTypeConverter(scheme.Scheme),
	}
}

// webhook has the match conditions of a webhook, compiled as in k8s.io/apiserver/pkg/admission/plugin/webhook.
type webhook struct {
	matcher matchconditions.Matcher
}

func compileWebhook(t *testing.T, file string) webhook {
	t.Helper()
	var read admissionv1.MutatingWebhookConfiguration
	decode(t, file, &read)
	if len(read.Webhooks) != 1 {
		t.Fatalf("%s has %d webhooks instead of one", file, len(read.Webhooks))
	}
	hook := read.Webhooks[0]
	compiler := plugincel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	evaluator := compiler.CompileCondition(accessors(hook.MatchConditions), plugincel.OptionalVariableDeclarations{HasAuthorizer: true},
		environment.StoredExpressions)
	fails := admissionv1.Fail // with Ignore the matcher would return no errors
	return webhook{matchconditions.NewMatcher(evaluator, &fails, "webhook", "admit", hook.Name)}
}

// calls reports whether the API server would call the webhook for the write. With an error it would not.
func (w webhook) calls(old, sent *corev1.Pod, by user.Info) (bool, error) {
	matched := w.matcher.Match(context.Background(), attributes(old, sent, by), nil, nil)
	return matched.Matches, matched.Error
}

func accessors(conditions []admissionv1.MatchCondition) []plugincel.ExpressionAccessor {
	all := make([]plugincel.ExpressionAccessor, len(conditions))
	for i := range conditions {
		all[i] = (*matchconditions.MatchCondition)(&conditions[i])
	}
	return all
}

func readSpec(t *testing.T, file string) admissionv1.MutatingAdmissionPolicySpec {
	t.Helper()
	var read admissionv1.MutatingAdmissionPolicy
	decode(t, file, &read)
	if len(read.Spec.Mutations) != 1 {
		t.Fatalf("%s has %d mutations instead of one; one mutation does not see what another changes", file, len(read.Spec.Mutations))
	}
	return read.Spec
}

// decode reads the first document of the file.
func decode(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	document, _, _ := strings.Cut(string(raw), "\n---\n")
	if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
		t.Fatal(err)
	}
}

// attributes returns the admission attributes of a write of pods/status.
func attributes(old, sent *corev1.Pod, by user.Info) *admission.VersionedAttributes {
	kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	old, sent = old.DeepCopy(), sent.DeepCopy()
	old.SetGroupVersionKind(kind)
	sent.SetGroupVersionKind(kind)
	return &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(
			sent, old, kind, sent.Namespace, sent.Name, resource, "status", admission.Update, nil, false, by),
		VersionedObject: sent, VersionedOldObject: old, VersionedKind: kind,
	}
}

// store returns the pod as it is stored after a write of pods/status, if no other admission changes it. With an error, the API server
// stores the pod as it was sent, because of failurePolicy.
func (p *policy) store(old, sent *corev1.Pod, by user.Info) (*corev1.Pod, error) {
	write := attributes(old, sent, by)
	ctx := p.compiler.CreateContext(context.Background())
	matched := p.matcher.Match(ctx, write, nil, nil)
	if matched.Error != nil || !matched.Matches {
		return sent, matched.Error
	}
	request := patch.Request{MatchedResource: write.GetResource(), VersionedAttributes: write, TypeConverter: p.types}
	changed, err := p.patcher.Patch(ctx, request, celconfig.RuntimeCELCostBudget)
	if err != nil {
		return sent, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(changed)
	if err != nil {
		return nil, err
	}
	stored := &corev1.Pod{}
	return stored, runtime.DefaultUnstructuredConverter.FromUnstructured(content, stored)
}
