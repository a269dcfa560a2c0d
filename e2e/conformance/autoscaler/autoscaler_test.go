// Package autoscaler tests how Kubernetes' own controller of HorizontalPodAutoscalers treats containers that restart in their pods. The
// pods and their metrics are given; the controller is the real one with its defaults. `go test -modfile=go-v1.37.2.mod ./autoscaler` uses
// that of another release.
package autoscaler

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	clienttesting "k8s.io/client-go/testing"
	defaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// pod is a pod of Deployment web that requests a whole CPU.
type pod struct {
	// uses is in percent of the request.
	uses  int64
	age   time.Duration
	ready bool
}

// several returns so many equal pods.
func several(count int, of pod) []pod {
	var pods []pod
	for range count {
		pods = append(pods, of)
	}
	return pods
}

// The Deployment has ten replicas, the autoscaler's goal is 70 %, and a container that starts uses 400 %.
const (
	replicas = 10
	target   = 70
	working  = 60
	starting = 400
)

// TestStartsOfRestartedContainersCountAsLoad shows that the use of a container that restarts in its pod counts, because the pod's startTime
// stays the same.
func TestStartsOfRestartedContainersCountAsLoad(t *testing.T) {
	old := pod{uses: working, age: time.Hour, ready: true}
	restarting := pod{uses: starting, age: time.Hour}
	running := pod{uses: starting, age: time.Hour, ready: true}
	newborn := pod{uses: starting, age: 20 * time.Second}
	young := pod{uses: starting, age: 4 * time.Minute}
	for name, test := range map[string]struct {
		pods     []pod
		resource corev1.ResourceName
		window   *int32
		want     int32
	}{
		"nothing starts":                  {several(10, old), corev1.ResourceCPU, nil, 10},
		"two restart in place":            {append(several(8, old), several(2, restarting)...), corev1.ResourceCPU, nil, 19},
		"two have restarted, and warm up": {append(several(8, old), several(2, running)...), corev1.ResourceCPU, nil, 19},
		"one restarts in place":           {append(several(9, old), restarting), corev1.ResourceCPU, nil, 14},
		"two restart, and it waits before it scales": {
			append(several(8, old), several(2, restarting)...), corev1.ResourceCPU, new(int32(600)), 10,
		},
		"two restart in pods of four minutes":    {append(several(8, old), several(2, young)...), corev1.ResourceCPU, nil, 10},
		"natively two new pods start":            {append(several(10, old), several(2, newborn)...), corev1.ResourceCPU, nil, 10},
		"natively two new pods start, by memory": {append(several(8, old), several(2, newborn)...), corev1.ResourceMemory, nil, 19},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wanted(t, test.pods, scaler(test.resource, test.window))(); got != test.want {
				t.Errorf("it wants %d replicas instead of %d", got, test.want)
			}
		})
	}
}

// TestStartsOutlastTheWindow shows that the autoscaler scales up after its stabilization window, even if other pods start meanwhile.
func TestStartsOutlastTheWindow(t *testing.T) {
	pods := append(several(8, pod{uses: working, age: time.Hour, ready: true}), several(2, pod{uses: starting, age: time.Hour})...)
	began := time.Now()
	next := wanted(t, pods, scaler(corev1.ResourceCPU, new(int32(1))))
	if first := next(); first != 10 {
		t.Errorf("within the window it wants %d replicas instead of 10", first)
	}
	if then := next(); then != 19 || time.Since(began) < time.Second {
		t.Errorf("after %s it wants %d replicas instead of 19 after a second", time.Since(began), then)
	}
}

// scaler returns an autoscaler as the API server would store it.
func scaler(resource corev1.ResourceName, window *int32) *autoscalingv2.HorizontalPodAutoscaler {
	utilization := int32(target)
	scaler := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MaxReplicas:    100,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: resource, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &utilization}}}},
		},
	}
	if window != nil {
		scaler.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleUp: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: window},
		}
	}
	defaults.SetObjectDefaults_HorizontalPodAutoscaler(scaler)
	return scaler
}

// wanted returns a function that returns the numbers of replicas that the controller asks for, in their order.
func wanted(t *testing.T, pods []pod, scaler *autoscalingv2.HorizontalPodAutoscaler) func() int32 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	now, used := time.Now(), usage{at: time.Now(), of: map[string]int64{}}
	objects := []runtime.Object{scaler}
	for i, pod := range pods {
		object := pod.object(fmt.Sprint("web-", i), now)
		objects, used.of[object.Name] = append(objects, object), pod.uses*10 // of 1000 milli
	}
	client := fake.NewClientset(objects...)
	said := make(chan int32)
	client.PrependReactor("update", "horizontalpodautoscalers", func(action clienttesting.Action) (bool, runtime.Object, error) {
		select {
		case said <- action.(clienttesting.UpdateAction).GetObject().(*autoscalingv2.HorizontalPodAutoscaler).Status.DesiredReplicas:
		case <-ctx.Done():
		}
		return false, nil, nil
	})
	informed := informers.NewSharedInformerFactory(client, 0)
	controller := podautoscaler.NewHorizontalController(ctx, client.CoreV1(), scales(len(pods)), client.AutoscalingV2(), mapper(), used,
		informed.Autoscaling().V2().HorizontalPodAutoscalers(), informed.Core().V1().Pods(),
		10*time.Millisecond, // the default is 15 s
		5*time.Minute, 0.1, 5*time.Minute, 30*time.Second)
	informed.Start(ctx.Done())
	go controller.Run(ctx, 1)
	return func() int32 {
		select {
		case desired := <-said:
			return desired
		case <-ctx.Done():
			t.Fatal("the controller has said nothing more")
			return 0
		}
	}
}

func (p pod) object(name string, now time.Time) *corev1.Pod {
	started := metav1.NewTime(now.Add(-p.age))
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-p.age / 2))}
	if !p.ready {
		ready.Status = corev1.ConditionFalse
	}
	whole := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: whole}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started, Conditions: []corev1.PodCondition{ready}},
	}
}

// usage answers as the metrics API does.
type usage struct {
	metrics.MetricsClient
	at time.Time
	of map[string]int64
}

func (u usage) GetResourceMetric(context.Context, corev1.ResourceName, string, labels.Selector, string,
) (metrics.PodMetricsInfo, time.Time, error) {
	info := metrics.PodMetricsInfo{}
	for name, uses := range u.of {
		info[name] = metrics.PodMetric{Timestamp: u.at, Window: 15 * time.Second, Value: uses}
	}
	return info, u.at, nil
}

// scales serves the scale of the Deployment.
func scales(pods int) *scalefake.FakeScaleClient {
	client := &scalefake.FakeScaleClient{}
	client.AddReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
			Status:     autoscalingv1.ScaleStatus{Replicas: int32(pods), Selector: "app=web"},
		}, nil
	})
	client.AddReactor("update", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, action.(clienttesting.UpdateAction).GetObject(), nil
	})
	return client
}

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{appsv1.SchemeGroupVersion})
	m.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	return m
}
