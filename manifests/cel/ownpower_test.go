package cel

import (
	"context"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
)

// TestOwnPowerOverSidecars: of init containers nothing may change but the image of one that lives, in a labelled namespace, and elsewhere only of
// one that was left half-way. e2e/ownpower_test.go asks the same, and the rest, of an API server.
func TestOwnPowerOverSidecars(t *testing.T) {
	half := func(hash string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			mark := readiness.Move{Hash: hash, Containers: map[string]readiness.MovedContainer{"mesh": {Image: "mesh:1", Sidecar: true}}}
			pod.Annotations = map[string]string{inplace.AnnotationMove: mark.String()}
		}
	}
	toMesh2 := func(pod *corev1.Pod) { pod.Spec.InitContainers[1].Image = "mesh:2" }
	for name, test := range map[string]struct {
		before, change func(*corev1.Pod)
		managed        bool
		want           string // part of why it is refused
	}{
		"nothing":             {func(*corev1.Pod) {}, func(*corev1.Pod) {}, true, ""},
		"a sidecar's image":   {func(*corev1.Pod) {}, toMesh2, true, ""},
		"an init container's": {func(*corev1.Pod) {}, func(pod *corev1.Pod) { pod.Spec.InitContainers[0].Image = "setup:2" }, true, "image of a sidecar"},
		"a sidecar's command": {func(*corev1.Pod) {}, func(pod *corev1.Pod) { pod.Spec.InitContainers[1].Args = []string{"x"} }, true, "image of a sidecar"},
		"its restart policy":  {func(*corev1.Pod) {}, func(pod *corev1.Pod) { pod.Spec.InitContainers[1].RestartPolicy = nil }, true, "image of a sidecar"},
		"another's restart policy": {func(*corev1.Pod) {}, func(pod *corev1.Pod) {
			pod.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}, true, "image of a sidecar"},
		"none any more":        {func(*corev1.Pod) {}, func(pod *corev1.Pod) { pod.Spec.InitContainers = nil }, true, "image of a sidecar"},
		"one more":             {func(pod *corev1.Pod) { pod.Spec.InitContainers = nil }, func(pod *corev1.Pod) { pod.Spec.InitContainers = []corev1.Container{{Name: "x"}} }, true, "image of a sidecar"},
		"unlabelled":           {func(*corev1.Pod) {}, toMesh2, false, "left half-way"},
		"unlabelled, half-way": {half("b"), toMesh2, false, ""},
		"unlabelled, done":     {half("a"), toMesh2, false, "left half-way"},
	} {
		t.Run(name, func(t *testing.T) {
			old := podWithSidecar()
			test.before(old)
			sent := old.DeepCopy()
			test.change(sent)
			got := refusals(t, "stayput-own-pods", old, sent, test.managed)
			if test.want == "" && len(got) > 0 || test.want != "" && !strings.Contains(strings.Join(got, "; "), test.want) {
				t.Errorf("refused for %q, want %q", got, test.want)
			}
		})
	}
}

func podWithSidecar() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", Labels: map[string]string{"pod-template-hash": "a"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-a", Controller: new(true)}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}, InitContainers: []corev1.Container{
			{Name: "setup", Image: "setup:1"}, {Name: "mesh", Image: "mesh:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}},
	}
}

// refusals are the messages with which a policy of own-power.yaml refuses the change of a pod.
func refusals(t *testing.T, name string, old, sent *corev1.Pod, managed bool) []string {
	t.Helper()
	spec := ownPolicy(t, name)
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
	var all []plugincel.ExpressionAccessor
	for _, v := range spec.Validations {
		all = append(all, &validating.ValidationCondition{Expression: v.Expression})
	}
	write := podWrite(old, sent)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if managed {
		namespace.Labels = map[string]string{inplace.LabelUpdate: "in-place"}
	}
	request := plugincel.CreateAdmissionRequest(write.Attributes, metav1.GroupVersionResource(write.GetResource()), metav1.GroupVersionKind(write.GetKind()))
	results, _, err := compiler.CompileCondition(all, options, environment.StoredExpressions).ForInput(compiler.CreateContext(context.Background()), write,
		request, plugincel.OptionalVariableBindings{}, plugincel.CreateNamespaceObject(namespace), celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatal(err)
	}
	var refused []string
	for i, result := range results {
		switch {
		case result.Error != nil:
			t.Fatalf("%s: %v", spec.Validations[i].Expression, result.Error)
		case result.EvalResult.Value() != true:
			refused = append(refused, spec.Validations[i].Message)
		}
	}
	return refused
}

func podWrite(old, sent *corev1.Pod) *admission.VersionedAttributes {
	kind, resource := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	return &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(sent, old, kind, sent.Namespace, sent.Name, resource, "", admission.Update, nil, false,
			kubelet("n")),
		VersionedObject: sent, VersionedOldObject: old, VersionedKind: kind,
	}
}

func ownPolicy(t *testing.T, name string) admissionv1.ValidatingAdmissionPolicySpec {
	t.Helper()
	raw, err := os.ReadFile("../base/own-power.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		var policy admissionv1.ValidatingAdmissionPolicy
		if err := yaml.Unmarshal([]byte(document), &policy); err == nil && policy.Kind == "ValidatingAdmissionPolicy" && policy.Name == name {
			return policy.Spec
		}
	}
	t.Fatalf("there is no policy %s", name)
	return admissionv1.ValidatingAdmissionPolicySpec{}
}
