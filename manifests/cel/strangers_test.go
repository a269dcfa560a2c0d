package cel

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"
)

// BenchmarkStrangers measures what the policies cost the API server in a namespace without the label: what a pod costs from its creation to
// its end, and what an edit of a Deployment costs.
func BenchmarkStrangers(b *testing.B) {
	named := func(name string, groups ...string) user.Info { return &user.DefaultInfo{Name: name, Groups: groups} }
	controller := func(name string) user.Info { return named("system:serviceaccount:kube-system:" + name) }
	kubelet, jane := named("system:node:n1", "system:nodes"), named("jane")
	pod, reported, deployment := fullPod(), fullPod(), fullDeployment()
	reported.Status.Conditions[0].Status = corev1.ConditionFalse
	edited := deployment.DeepCopy()
	edited.Spec.Template.Spec.Containers[0].Image = "shop/app:2"
	binding := &corev1.Binding{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"}, ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	set := &appsv1.ReplicaSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}, ObjectMeta: deployment.ObjectMeta,
		Spec: appsv1.ReplicaSetSpec{Template: deployment.Spec.Template}}
	report := write{"pods", "status", pod, reported, kubelet}
	scaling := write{"replicasets", "", set, set, controller("deployment-controller")}
	status := write{"deployments", "status", edited, edited, controller("deployment-controller")}
	for name, writes := range map[string][]write{
		"a pod's life": {
			{"pods", "", nil, pod, controller("replicaset-controller")}, {"pods", "binding", nil, binding, named("system:kube-scheduler")},
			report, report, report, report, {"pods", "", pod, nil, kubelet},
		},
		"a pod's life, created by a user": {{"pods", "", nil, pod, jane}, {"pods", "binding", nil, binding, named("system:kube-scheduler")},
			report, report, report, report, {"pods", "", pod, nil, kubelet},
		},
		"an edit": {{"deployments", "", deployment, edited, jane}, {"replicasets", "", nil, set, controller("deployment-controller")},
			scaling, scaling, scaling, scaling, status, status, status,
		},
	} {
		policies := allPolicies(b)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, each := range writes {
					for _, policy := range policies {
						each.by(b, policy)
					}
				}
			}
		})
	}
}

// write is a write of an object, or of a subresource of it.
type write struct {
	resource, subresource string
	old, sent             runtime.Object
	user                  user.Info
}

// policy is a compiled policy, with what it applies to.
type policy struct {
	refusals
	name string
	spec admissionv1.ValidatingAdmissionPolicySpec
}

// allPolicies returns all policies that are installed.
func allPolicies(t testing.TB) []policy {
	t.Helper()
	files, err := filepath.Glob("../base/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []policy
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(raw), "\n---\n") {
			var read metav1.PartialObjectMetadata
			if err := yaml.Unmarshal([]byte(document), &read); err != nil {
				t.Fatal(err)
			}
			if read.Kind == "ValidatingAdmissionPolicy" {
				all = append(all, policy{compileRefusals(t, file, read.Name), read.Name, validatingSpec(t, file, read.Name)})
			}
		}
	}
	return all
}

// by asks the policy about the write as the API server does, if its rules match the write.
func (w write) by(t testing.TB, p policy) {
	operation, object := admission.Update, w.sent
	switch {
	case w.old == nil:
		operation = admission.Create
	case w.sent == nil:
		operation, object = admission.Delete, w.old
	}
	if !p.matches(w, operation) {
		return
	}
	kind, in := object.GetObjectKind().GroupVersionKind(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	resource := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: w.resource}
	attributes := &admission.VersionedAttributes{VersionedObject: w.sent, VersionedOldObject: w.old, VersionedKind: kind,
		Attributes: admission.NewAttributesRecord(w.sent, w.old, kind, in.Name, "web", resource, w.subresource, operation, nil, false, w.user)}
	result := p.Validate(context.Background(), resource, attributes, nil, in, celconfig.RuntimeCELCostBudget, nil)
	for _, decision := range result.Decisions {
		if decision.Action != "admit" {
			t.Fatalf("%s refuses %s of %s: %s", p.name, operation, w.resource, decision.Message)
		}
	}
}

// matches reports whether the policy applies to the write, by its rules and its selector of namespaces.
func (p policy) matches(w write, operation admission.Operation) bool {
	selector := p.spec.MatchConstraints.NamespaceSelector
	if selector != nil && selector.MatchExpressions[0].Operator == metav1.LabelSelectorOpIn {
		return false // kube-system, and Stayput's own namespace
	}
	resource := w.resource
	if w.subresource != "" {
		resource += "/" + w.subresource
	}
	return slices.ContainsFunc(p.spec.MatchConstraints.ResourceRules, func(rule admissionv1.NamedRuleWithOperations) bool {
		return slices.Contains(rule.Resources, resource) && slices.Contains(rule.Operations, admissionv1.OperationType(operation))
	})
}

// fullPod is a pod as API servers have them, of two containers.
func fullPod() *corev1.Pod {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	pod.ObjectMeta, pod.Spec = fullDeployment().Spec.Template.ObjectMeta, fullDeployment().Spec.Template.Spec
	pod.Name, pod.Namespace, pod.Spec.NodeName = "web", "shop", "n1"
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: new(true)}}
	for _, of := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized, corev1.PodScheduled,
		corev1.PodReadyToStartContainers} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: of, Status: corev1.ConditionTrue})
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, VolumeMounts: []corev1.VolumeMountStatus{{Name: "data"}}})
	}
	return pod
}

func fullDeployment() *appsv1.Deployment {
	container := func(name string) corev1.Container {
		c := corev1.Container{Name: name, Image: "shop/app:1", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
			VolumeMounts:  []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "token", MountPath: "/token"}},
			LivenessProbe: &corev1.Probe{PeriodSeconds: 1}, ReadinessProbe: &corev1.Probe{PeriodSeconds: 1}}
		for _, variable := range []string{"A", "B", "C", "D", "E"} {
			c.Env = append(c.Env, corev1.EnvVar{Name: variable, Value: "some value"})
		}
		return c
	}
	labels := map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop", "pod-template-hash": "abc"}
	tolerations := []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Effect: "NoExecute"}, {Key: "node.kubernetes.io/unreachable"}}
	spec := corev1.PodSpec{Containers: []corev1.Container{container("app"), container("proxy")}, Tolerations: tolerations,
		Volumes: []corev1.Volume{{Name: "data"}, {Name: "token"}}, SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true)}}
	meta := metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"prometheus.io/scrape": "true"}}
	return &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: meta, Spec: spec}}}
}
