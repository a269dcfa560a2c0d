package cel

import (
	"context"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// bound is a ValidatingAdmissionPolicy of own-power.yaml, compiled as in k8s.io/apiserver/pkg/admission/plugin/policy/validating.
type bound struct {
	compiler  *plugincel.CompositedCompiler
	evaluator plugincel.ConditionEvaluator
	rules     []admissionv1.Validation
}

func compileBound(t *testing.T, name string) bound {
	t.Helper()
	raw, err := os.ReadFile("../base/own-power.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		var read admissionv1.ValidatingAdmissionPolicy
		if err := yaml.Unmarshal([]byte(document), &read); err != nil {
			t.Fatal(err)
		}
		if read.Kind == "ValidatingAdmissionPolicy" && read.Name == name {
			return compileRules(t, read.Spec)
		}
	}
	t.Fatalf("there is no policy %s", name)
	return bound{}
}

func compileRules(t *testing.T, spec admissionv1.ValidatingAdmissionPolicySpec) bound {
	t.Helper()
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range spec.Variables {
		if result := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, options, environment.StoredExpressions); result.Error != nil {
			t.Fatalf("variable %s: %v", v.Name, result.Error)
		}
	}
	var conditions []plugincel.ExpressionAccessor
	for _, v := range spec.Validations {
		conditions = append(conditions, &validating.ValidationCondition{Expression: v.Expression})
	}
	return bound{compiler, compiler.CompileCondition(conditions, options, environment.StoredExpressions), spec.Validations}
}

// refuses is the first message with which the policy refuses that write in a namespace with those labels; empty if it lets it pass.
func (b bound) refuses(t *testing.T, old, sent *corev1.Pod, namespace map[string]string) string {
	t.Helper()
	write := attributes(old, sent, &user.DefaultInfo{})
	results, _, err := b.evaluator.ForInput(b.compiler.CreateContext(context.Background()), write,
		plugincel.CreateAdmissionRequest(write.Attributes, metav1.GroupVersionResource(write.GetResource()), metav1.GroupVersionKind(write.VersionedKind)),
		plugincel.OptionalVariableBindings{}, plugincel.CreateNamespaceObject(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: namespace}}), celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatal(err)
	}
	for i, result := range results {
		if result.Error != nil {
			t.Fatal(result.Error)
		}
		if result.EvalResult.Value() != true {
			return b.rules[i].Message
		}
	}
	return ""
}

func TestOwnResizes(t *testing.T) {
	b := compileBound(t, "stayput-own-resizes")
	labelled := map[string]string{"stayput.dev/update": "in-place"}
	const mark = `{"hash":"b","resize":{"app":{"from":{"cpuRequest":"100m"},"to":{"cpuRequest":"200m"},"at":null}}}`
	const others = "stayput changes nothing with the resources of a pod but those of its containers"
	for name, test := range map[string]struct {
		namespace    map[string]string
		before, both func(*corev1.Pod)
		after        func(*corev1.Pod)
		want         string
	}{
		"as marked":                     {namespace: labelled, after: cpu(0, "200m")},
		"back":                          {before: cpu(0, "200m"), after: cpu(0, "100m")},
		"a container that is not named": {namespace: labelled, after: cpu(1, "200m"), want: "stayput resizes only containers that its mark names"},
		"without a mark": {namespace: labelled, both: func(p *corev1.Pod) { p.Annotations = nil }, after: cpu(0, "200m"),
			want: "stayput resizes only containers that its mark names"},
		"moved already, without the label": {both: func(p *corev1.Pod) { p.Labels["pod-template-hash"] = "b" }, after: cpu(0, "200m"),
			want: "without the namespace's label stayput resizes only pods that it has left half-way"},
		"of a DaemonSet, without the label": {both: func(p *corev1.Pod) { p.Labels = nil }, after: cpu(0, "200m"),
			want: "without the namespace's label stayput resizes only pods that it has left half-way"},
		"of nobody":       {namespace: labelled, both: func(p *corev1.Pod) { p.OwnerReferences = nil }, after: cpu(0, "200m"), want: "stayput resizes only pods of Deployments and DaemonSets"},
		"a resize policy": {namespace: labelled, after: func(p *corev1.Pod) { p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{}} }, want: others},
		"of the pod":      {namespace: labelled, after: func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{} }, want: others},
		"a label":         {namespace: labelled, after: func(p *corev1.Pod) { p.Labels = map[string]string{} }, want: others},
	} {
		old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pod-template-hash": "a"}, Annotations: map[string]string{"stayput.dev/move": mark},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Controller: new(true)}}}}
		old.Spec.Containers = []corev1.Container{{Name: "app"}, {Name: "side"}}
		for i := range old.Spec.Containers {
			cpu(i, "100m")(old)
		}
		for _, change := range []func(*corev1.Pod){test.both, test.before} {
			if change != nil {
				change(old)
			}
		}
		sent := old.DeepCopy()
		test.after(sent)
		if got := b.refuses(t, old, sent, test.namespace); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func cpu(container int, amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[container].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
}
