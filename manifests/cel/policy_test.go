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
	conditions := make([]plugincel.ExpressionAccessor, len(spec.MatchConditions))
	for i := range spec.MatchConditions {
		conditions[i] = (*matchconditions.MatchCondition)(&spec.MatchConditions[i])
	}
	evaluator := compiler.CompileCondition(conditions, options, environment.StoredExpressions)
	options.HasPatchTypes = true
	mutation := &patch.ApplyConfigurationCondition{Expression: spec.Mutations[0].ApplyConfiguration.Expression}
	return &policy{
		compiler: compiler,
		matcher:  matchconditions.NewMatcher(evaluator, spec.FailurePolicy, "policy", "validate", file),
		patcher:  patch.NewApplyConfigurationPatcher(compiler.CompileMutatingEvaluator(mutation, options, environment.StoredExpressions)),
		types:    applyconfigurations.NewTypeConverter(scheme.Scheme),
	}
}

func readSpec(t *testing.T, file string) admissionv1.MutatingAdmissionPolicySpec {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	document, _, _ := strings.Cut(string(raw), "\n---\n")
	var read admissionv1.MutatingAdmissionPolicy
	if err := yaml.UnmarshalStrict([]byte(document), &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Spec.Mutations) != 1 {
		t.Fatalf("%s has %d mutations instead of one, which alone sees what it changes", file, len(read.Spec.Mutations))
	}
	return read.Spec
}

// store is what is stored of a write of pods/status, if nobody else changes it. An error means: as it was sent, by failurePolicy.
func (p *policy) store(old, sent *corev1.Pod, by user.Info) (*corev1.Pod, error) {
	kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	old, sent = old.DeepCopy(), sent.DeepCopy()
	old.SetGroupVersionKind(kind)
	sent.SetGroupVersionKind(kind)
	write := &admission.VersionedAttributes{
		Attributes:      admission.NewAttributesRecord(sent, old, kind, sent.Namespace, sent.Name, resource, "status", admission.Update, nil, false, by),
		VersionedObject: sent, VersionedOldObject: old, VersionedKind: kind,
	}
	ctx := p.compiler.CreateContext(context.Background())
	matched := p.matcher.Match(ctx, write, nil, nil)
	if matched.Error != nil || !matched.Matches {
		return sent, matched.Error
	}
	changed, err := p.patcher.Patch(ctx, patch.Request{MatchedResource: resource, VersionedAttributes: write, TypeConverter: p.types},
		celconfig.RuntimeCELCostBudget)
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
