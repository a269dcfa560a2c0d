package steps

import (
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/edit"
)

func byResource(name corev1.ResourceName) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: name}}
}

func byContainer(name corev1.ResourceName, container string) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType,
		ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: name, Container: container}}
}

func scalingUp(window *int32, policy *autoscalingv2.ScalingPolicySelect) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	up := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: window, SelectPolicy: policy}
	return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: up}
}

// TestWhichAutoscalersCountStarts: the change gives container app another image, and container log other CPU without a restart.
func TestWhichAutoscalersCountStarts(t *testing.T) {
	change := edit.Change{Containers: edit.ContainerChanges{
		{Container: "app", Image: edit.ImageChange{From: "app:1", To: "app:2"}},
		{Container: "log", Resources: edit.ResourceChange{Written: edit.Amounts{CPURequest: "2"}}},
	}}
	cpu, memory := byResource(corev1.ResourceCPU), byResource(corev1.ResourceMemory)
	pods := autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{}}
	for name, test := range map[string]struct {
		metrics  []autoscalingv2.MetricSpec
		behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
		change   edit.Change
		why      string
	}{
		"cpu":                       {[]autoscalingv2.MetricSpec{cpu}, nil, change, "scales by cpu"},
		"cpu besides others":        {[]autoscalingv2.MetricSpec{pods, memory, cpu}, nil, change, "scales by cpu"},
		"cpu, and nothing restarts": {[]autoscalingv2.MetricSpec{cpu}, nil, edit.Change{Containers: change.Containers[1:]}, ""},
		"memory, as natively":       {[]autoscalingv2.MetricSpec{memory}, nil, change, ""},
		"another metric":            {[]autoscalingv2.MetricSpec{pods}, nil, change, ""},
		"cpu of the container": {[]autoscalingv2.MetricSpec{byContainer(corev1.ResourceCPU, "app")}, nil,
			change, "scales by cpu of container app"},
		"memory of the container": {[]autoscalingv2.MetricSpec{byContainer(corev1.ResourceMemory, "app")}, nil, change, ""},
		"cpu of one that runs on": {[]autoscalingv2.MetricSpec{byContainer(corev1.ResourceCPU, "log")}, nil, change, ""},
		"scales up after a window": {[]autoscalingv2.MetricSpec{cpu}, scalingUp(new(int32(300)), nil),
			change, ""},
		"a window of 0, as is default": {[]autoscalingv2.MetricSpec{cpu}, scalingUp(new(int32(0)), nil), change, "scales by cpu"},
		"no window": {[]autoscalingv2.MetricSpec{cpu}, scalingUp(nil, new(autoscalingv2.MinChangePolicySelect)),
			change, "scales by cpu"},
		"says only how it scales down": {[]autoscalingv2.MetricSpec{cpu}, &autoscalingv2.HorizontalPodAutoscalerBehavior{},
			change, "scales by cpu"},
		"never scales up": {[]autoscalingv2.MetricSpec{cpu}, scalingUp(nil, new(autoscalingv2.DisabledPolicySelect)),
			change, ""},
		"no metric": {nil, nil, change, ""},
	} {
		spec := autoscalingv2.HorizontalPodAutoscalerSpec{Metrics: test.metrics, Behavior: test.behavior}
		if why := countsStarts(&spec, test.change); why != test.why {
			t.Errorf("%s: %q, want %q", name, why, test.why)
		}
	}
}

// TestAboutOfAnotherTarget: autoscalers of workloads with the same name but another kind, or with another name.
func TestAboutOfAnotherTarget(t *testing.T) {
	web := ScaleTarget{Kind: "StatefulSet", Name: "web"}
	change := edit.Change{Containers: edit.ContainerChanges{{Container: "app", Restart: true}}}
	for ref, speaks := range map[autoscalingv2.CrossVersionObjectReference]bool{
		{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}:                 true,
		{APIVersion: "apps/v1beta1", Kind: "StatefulSet", Name: "web"}:            true,
		{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "api"}:                 false,
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}:                  false,
		{APIVersion: "apps.example.com/v1", Kind: "StatefulSet", Name: "web"}:     false,
		{APIVersion: "no/group/version/at/all", Kind: "StatefulSet", Name: "web"}: false,
		{APIVersion: "", Kind: "StatefulSet", Name: "web"}:                        false,
	} {
		scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "by-cpu"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: ref,
				Metrics: []autoscalingv2.MetricSpec{byResource(corev1.ResourceCPU)}}}
		about := AboutAutoscaler(scaler, web, change)
		if strings.HasPrefix(about, "HorizontalPodAutoscaler by-cpu scales by cpu: ") != speaks {
			t.Errorf("scaleTargetRef %+v: AboutAutoscaler returns %q", ref, about)
		}
	}
}
