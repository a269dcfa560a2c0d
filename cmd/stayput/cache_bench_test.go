package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace/apps"
)

// usual returns a pod as applications' charts make them, with what an API server and a kubelet add.
func usual(i int) *corev1.Pod {
	name, at := fmt.Sprintf("web-6d5f9c7b8-%05d", i), metav1.NewTime(time.Unix(1_800_000_000+int64(i), 0))
	probe := &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080), Scheme: "HTTP"}},
		TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3}
	container := corev1.Container{Name: "app", Image: "registry.example/shop/web:1.2.3", Args: []string{"--port=8080", "--verbose"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}}, LivenessProbe: probe, ReadinessProbe: probe,
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: "File", ImagePullPolicy: "IfNotPresent"}
	for n := range 20 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("SHOP_SETTING_%d", n), Value: strings.Repeat("value", 6)})
	}
	for _, place := range []string{"/etc/shop", "/var/cache/shop", "/tmp", "/var/run/secrets/kubernetes.io/serviceaccount"} {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "volume-" + place[1:4], MountPath: place})
	}
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, GenerateName: "web-6d5f9c7b8-",
			UID:             types.UID("8b0b6f7e-5c8a-4d0a-9d5b-" + name),
			ResourceVersion: fmt.Sprint(1_000_000 + i), Generation: 1, CreationTimestamp: at,
			Labels: map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "shop", "helm.sh/chart": "web-1.2.3",
				"pod-template-hash": "6d5f9c7b8"},
			Annotations: map[string]string{"checksum/config": strings.Repeat("0123456789abcdef", 4), "prometheus.io/scrape": "true",
				"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(
				&metav1.ObjectMeta{Name: "web-6d5f9c7b8", UID: "1f0b6f7e-5c8a-4d0a-9d5b-0123456789ab"},
				corev1.SchemeGroupVersion.WithKind("ReplicaSet"))},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &at,
				FieldsType: "FieldsV1",
				FieldsV1:   metav1.NewFieldsV1(`{"f:metadata":{` + strings.Repeat(`"f:field":{},`, 150) + `"f:last":{}}}`)}}},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%03d", i%200), Containers: []corev1.Container{container}, ServiceAccountName: "web",
			SchedulerName: "default-scheduler", RestartPolicy: "Always", DNSPolicy: "ClusterFirst",
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute"}}},
		Status: corev1.PodStatus{Phase: "Running", HostIP: "10.0.0.1", HostIPs: []corev1.HostIP{{IP: "10.0.0.1"}},
			PodIP:  fmt.Sprintf("10.1.%d.%d", i/250, i%250),
			PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.1.%d.%d", i/250, i%250)}}, StartTime: &at, QOSClass: "Burstable", ObservedGeneration: 1},
	}
	for _, mount := range container.VolumeMounts {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: mount.Name, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web-configuration"}}}})
	}
	for _, kind := range []corev1.PodConditionType{
		"PodReadyToStartContainers", corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: kind, Status: "True", LastTransitionTime: at, ObservedGeneration: 1})
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Image: container.Image,
		ImageID:     "registry.example/shop/web@sha256:" + strings.Repeat("0123456789abcdef", 4),
		ContainerID: "containerd://" + fmt.Sprintf("%064d", i), Ready: true, Started: new(bool),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
		VolumeMounts: []corev1.VolumeMountStatus{{Name: "a", MountPath: "/etc/shop"}, {Name: "b", MountPath: "/tmp"},
			{Name: "c", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
		Resources: &corev1.ResourceRequirements{}}}
	return pod
}

// encodings returns the encodings in which an API server may send a pod.
func encodings(b *testing.B) map[string]kruntime.Serializer {
	scheme, err := newScheme()
	if err != nil {
		b.Fatal(err)
	}
	factory, all := serializer.NewCodecFactory(scheme), map[string]kruntime.Serializer{}
	for _, media := range []string{kruntime.ContentTypeJSON, kruntime.ContentTypeProtobuf} {
		info, found := kruntime.SerializerInfoForMediaType(factory.SupportedMediaTypes(), media)
		if !found {
			b.Fatalf("no serializer for %s", media)
		}
		all[media] = info.Serializer
	}
	return all
}

// BenchmarkReceivePod measures what each event of a pod costs until it is in the cache.
func BenchmarkReceivePod(b *testing.B) {
	for media, serializer := range encodings(b) {
		sent, err := kruntime.Encode(serializer, usual(1))
		if err != nil {
			b.Fatal(err)
		}
		keep := transformOf(b, &corev1.Pod{})
		b.Run(media[strings.LastIndexAny(media, "/.")+1:], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pod := &corev1.Pod{}
				if _, _, err := serializer.Decode(sent, nil, pod); err != nil {
					b.Fatal(err)
				}
				if _, err := keep(pod); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReceiveReplicaSet measures what each event of a ReplicaSet costs until it is in the cache.
func BenchmarkReceiveReplicaSet(b *testing.B) {
	serializer, pod := encodings(b)[kruntime.ContentTypeJSON], usual(1)
	rs := &appsv1.ReplicaSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}, ObjectMeta: pod.ObjectMeta,
		Spec: appsv1.ReplicaSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}}}
	sent, err := json.Marshal(rs)
	if err != nil {
		b.Fatal(err)
	}
	keep := transformOf(b, &apps.ReplicaSet{})
	b.ReportAllocs()
	for b.Loop() {
		rs := &apps.ReplicaSet{}
		if _, _, err := serializer.Decode(sent, nil, rs); err != nil {
			b.Fatal(err)
		}
		if _, err := keep(rs); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCachedPods measures the memory of 10,000 cached pods: as they are sent, as they are kept in a labelled namespace, and as
// outlines in another one.
func BenchmarkCachedPods(b *testing.B) {
	const pods = 10_000
	serializers := encodings(b)
	for _, media := range []string{kruntime.ContentTypeJSON, kruntime.ContentTypeProtobuf} {
		for _, namespace := range []string{"", "shop", "other"} {
			b.Run(fmt.Sprintf("%s/kept in %q", media[strings.LastIndexAny(media, "/.")+1:], namespace), func(b *testing.B) {
				for b.Loop() {
					before := heap()
					keep, kept := transformOf(b, &corev1.Pod{}), make([]any, pods)
					for i := range kept {
						pod := decoded(b, serializers[media], usual(i), &corev1.Pod{})
						if kept[i] = pod; namespace != "" {
							pod.Namespace = namespace
							kept[i], _ = keep(pod)
						}
					}
					b.ReportMetric(float64(heap()-before)/pods, "B/pod")
					runtime.KeepAlive(kept)
				}
			})
		}
	}
}

// decoded returns the object as it comes from an API server.
func decoded[T kruntime.Object](b *testing.B, serializer kruntime.Serializer, sent kruntime.Object, into T) T {
	b.Helper()
	raw, err := kruntime.Encode(serializer, sent)
	if err != nil {
		b.Fatal(err)
	}
	if _, _, err := serializer.Decode(raw, nil, into); err != nil {
		b.Fatal(err)
	}
	return into
}

// BenchmarkCachedNodes measures the memory of 1,000 cached nodes. Each lists as many images as kubelets do by default.
func BenchmarkCachedNodes(b *testing.B) {
	const nodes = 1000
	serializer := encodings(b)[kruntime.ContentTypeProtobuf]
	for _, trimmed := range []bool{false, true} {
		b.Run(fmt.Sprintf("trimmed=%t", trimmed), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				keep, kept := transformOf(b, &corev1.Node{}), make([]any, nodes)
				for i := range kept {
					kept[i] = decoded(b, serializer, usualNode(i), &corev1.Node{})
					if trimmed {
						kept[i], _ = keep(kept[i])
					}
				}
				b.ReportMetric(float64(heap()-before)/nodes, "B/node")
				runtime.KeepAlive(kept)
			}
		})
	}
}

func usualNode(i int) *corev1.Node {
	name := fmt.Sprintf("node-%04d", i)
	node := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name}}}
	for n := range 50 {
		name := fmt.Sprintf("registry.example/shop/service-%d", n)
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{SizeBytes: 100 << 20,
			Names: []string{name + "@sha256:" + strings.Repeat("0123456789abcdef", 4), name + ":1.2.3"}})
	}
	return node
}
