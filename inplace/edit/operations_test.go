package edit

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
)

func TestPodOperations(t *testing.T) {
	pod := func(labels, annotations map[string]string, containers ...string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}}
		for i := 0; i < len(containers); i += 2 {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: containers[i], Image: containers[i+1]})
		}
		return pod
	}
	tests := map[string]struct {
		pod           *corev1.Pod
		before, after edits
		want          string
	}{
		"nothing": {pod: pod(nil, nil, "app", "app:1"), want: "null"},
		"images by name among injected containers": {
			pod:   pod(nil, nil, "mesh", "mesh:7", "proxy", "proxy:1", "app", "app:1"),
			after: edits{newImage: `"app:2"`, "/spec/containers/1/image": `"proxy:2"`},
			want: `[{"op":"replace","path":"/spec/containers/2/image","value":"app:2"},` +
				`{"op":"replace","path":"/spec/containers/1/image","value":"proxy:2"}]`,
		},
		"a sidecar's among injected ones": {
			pod: func() *corev1.Pod {
				pod, always := pod(nil, nil, "app", "app:1"), corev1.ContainerRestartPolicyAlways
				pod.Spec.InitContainers = []corev1.Container{{Name: "cni", Image: "cni:1"}, {Name: "mesh", Image: "mesh:7", RestartPolicy: &always},
					{Name: "setup", Image: "setup:1"}, {Name: "side", Image: "side:1", RestartPolicy: &always}}
				return pod
			}(),
			after: edits{newImage: `"app:2"`, sideImage: `"side:2"`},
			want: `[{"op":"replace","path":"/spec/containers/0/image","value":"app:2"},` +
				`{"op":"replace","path":"/spec/initContainers/3/image","value":"side:2"}]`,
		},
		"an image the pod has already": {pod: pod(nil, nil, "app", "app:2"), after: edits{newImage: `"app:2"`}, want: "null"},
		"only labels that differ between the templates": {
			pod: pod(map[string]string{"app": "mine", "version": "1", "injected": "yes", "pod-template-hash": "a"}, nil),
			after: edits{version: `"2"`, "/metadata/labels/helm.sh~1chart": `"web~2"`, "/metadata/labels/pod-template-hash": `"b"`,
				"/metadata/labels/controller-revision-hash": `"b"`},
			want: `[{"op":"add","path":"/metadata/labels/helm.sh~1chart","value":"web~2"},` +
				`{"op":"add","path":"/metadata/labels/version","value":"2"}]`,
		},
		"tolerations behind those that others have added": {
			pod: tolerant(corev1.Toleration{Key: "node.kubernetes.io/not-ready"},
				corev1.Toleration{Key: "batch", Operator: "Exists", Effect: "NoSchedule"}),
			after: tolerating(batch, spot, gpu),
			want: `[{"op":"add","path":"/spec/tolerations/-","value":{"key":"spot","effect":"NoExecute","tolerationSeconds":60}},` +
				`{"op":"add","path":"/spec/tolerations/-","value":{"key":"gpu","value":"yes","effect":"NoSchedule"}}]`,
		},
		"first tolerations": {
			pod: tolerant(), after: tolerating(batch, gpu),
			want: `[{"op":"add","path":"/spec/tolerations","value":[{"key":"batch","operator":"Exists","effect":"NoSchedule"},{"key":"gpu",` +
				`"value":"yes","effect":"NoSchedule"}]}]`,
		},
		"the same toleration for another time": {
			pod: tolerant(corev1.Toleration{Key: "spot", Effect: "NoExecute", TolerationSeconds: new(int64(30))}), after: tolerating(spot),
			want: `[{"op":"add","path":"/spec/tolerations/-","value":{"key":"spot","effect":"NoExecute","tolerationSeconds":60}}]`,
		},
		"tolerations the pod has already": {
			pod:   tolerant(corev1.Toleration{Key: "spot", Effect: "NoExecute", TolerationSeconds: new(int64(60))}),
			after: tolerating(spot), want: "null",
		},
		"escapes": {
			pod:   pod(map[string]string{"a": ""}, nil),
			after: edits{"/metadata/labels/x~1y~0z": `""`},
			want:  `[{"op":"add","path":"/metadata/labels/x~1y~0z","value":""}]`,
		},
		"a label that goes": {
			pod: pod(map[string]string{"version": "1"}, nil), after: edits{version: ""},
			want: `[{"op":"remove","path":"/metadata/labels/version"}]`,
		},
		"a label that is gone": {pod: pod(map[string]string{"a": ""}, nil), after: edits{version: ""}, want: "null"},
		"a pod without labels": {
			pod: pod(nil, nil), after: edits{version: `"2"`},
			want: `[{"op":"add","path":"/metadata/labels","value":{}},{"op":"add","path":"/metadata/labels/version","value":"2"}]`,
		},
		"an allowed annotation is removed that the pod may not have": {
			pod: pod(nil, map[string]string{"cni": "x"}), after: edits{"/metadata/annotations/note": ""},
			want: `[{"op":"add","path":"/metadata/annotations/note","value":""},{"op":"remove","path":"/metadata/annotations/note"}]`,
		},
		"allowed annotation of a pod without any": {
			pod: pod(nil, nil), after: edits{"/metadata/annotations/note": `"b"`},
			want: `[{"op":"add","path":"/metadata/annotations","value":{}},{"op":"add","path":"/metadata/annotations/note","value":"b"}]`,
		},
		"allowed annotation": {
			pod: pod(nil, map[string]string{"cni": "x"}), after: edits{"/metadata/annotations/note": `"b"`},
			want: `[{"op":"add","path":"/metadata/annotations/note","value":"b"}]`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			from, to := edited(t, test.before), edited(t, test.after)
			change := Compare(from, to, inplace.Rules{Annotations: []string{"note"}})
			if !change.InPlace() {
				t.Fatal(change)
			}
			got, err := json.Marshal(change.PodOperations(test.pod))
			if err != nil || string(got) != test.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, test.want)
			}
		})
	}
}

func tolerant(tolerations ...corev1.Toleration) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Tolerations: tolerations}}
}
