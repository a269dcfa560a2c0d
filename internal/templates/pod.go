package templates

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodOf returns what the API server makes of a template when it creates a pod, as far as it matters here. A request that is left out
// equals the limit (SetDefaults_Pod in pkg/apis/core/v1/defaults.go). Constraints that place pods by the pods' own labels get the values
// of those labels (mutatePodAffinity and mutateTopologySpreadConstraints in pkg/registry/core/pod/strategy.go).
func PodOf(template corev1.PodTemplateSpec) *corev1.Pod {
	made := template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: made.ObjectMeta, Spec: made.Spec}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
		}
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		selectValues(constraint.LabelSelector, constraint.MatchLabelKeys, pod.Labels)
	}
	if pod.Spec.Affinity != nil && pod.Spec.Affinity.PodAntiAffinity != nil {
		selectOwn(pod.Spec.Affinity.PodAntiAffinity, pod.Labels)
	}
	return pod
}

func requestLimits(resources *corev1.ResourceRequirements) {
	for name, limit := range resources.Limits {
		if _, has := resources.Requests[name]; has {
			continue
		}
		if resources.Requests == nil {
			resources.Requests = corev1.ResourceList{}
		}
		resources.Requests[name] = limit
	}
}

func selectOwn(apart *corev1.PodAntiAffinity, labels map[string]string) {
	for i := range apart.RequiredDuringSchedulingIgnoredDuringExecution {
		term := &apart.RequiredDuringSchedulingIgnoredDuringExecution[i]
		selectValues(term.LabelSelector, term.MatchLabelKeys, labels)
	}
	for i := range apart.PreferredDuringSchedulingIgnoredDuringExecution {
		term := &apart.PreferredDuringSchedulingIgnoredDuringExecution[i].PodAffinityTerm
		selectValues(term.LabelSelector, term.MatchLabelKeys, labels)
	}
}

// selectValues adds the pod's own values of the keys to a selector.
func selectValues(selector *metav1.LabelSelector, keys []string, labels map[string]string) {
	for _, key := range keys {
		if value, has := labels[key]; has {
			selector.MatchExpressions = append(selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}})
		}
	}
}
