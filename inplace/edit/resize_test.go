package edit

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stayput/stayput/inplace"
)

const (
	resources     = "/spec/containers/0/resources"
	resizePolicy0 = "/spec/containers/0/resizePolicy"
	readsLimit    = `[{"name": "A", "value": "1"}, {"name": "L", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", ` +
		`"divisor": "1Mi"}}}]`
	readsCPU = `[{"name": "info", "projected": {"sources": [{"downwardAPI": {"items": [{"path": "cpu", "resourceFieldRef": ` +
		`{"containerName": "app", "resource": "requests.cpu"}}]}}]}}]`
)

func TestCompareResources(t *testing.T) {
	restart, none := edits{resizePolicy0: `[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}, {"resourceName": "memory", ` +
		`"restartPolicy": "NotRequired"}]`},
		edits{resizePolicy0: `[{"resourceName": "cpu", "restartPolicy": "NotRequired"}]`}
	sized := edits{resources: `{"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}`}
	cpu := edits{resources + "/requests/cpu": `"0.2"`}
	for name, test := range map[string]struct {
		base, before, after edits
		resize              inplace.Resize
		want                string
	}{
		"cpu":                   {base: sized, after: cpu, resize: inplace.ResizeAll, want: "in place: resizes app, no restart"},
		"cpu, another spelling": {base: sized, after: edits{resources + "/requests/cpu": `"0.1"`}, resize: inplace.ResizeAll, want: "no change"},
		"memory": {base: sized, after: edits{resources + "/limits/memory": `"128Mi"`}, resize: inplace.ResizeAll,
			want: "in place: resizes app, no restart"},
		"a limit is new": {base: sized, after: edits{resources + "/limits/cpu": `"1"`}, resize: inplace.ResizeAll,
			want: "recreate: container app gains or loses a request or limit of cpu, and a running container cannot lose one"},
		"a limit goes": {base: sized, after: edits{resources + "/limits": ""}, resize: inplace.ResizeAll,
			want: "recreate: container app gains or loses a request or limit of memory, and a running container cannot lose one"},
		"all go": {base: sized, after: edits{resources: "{}"}, resize: inplace.ResizeAll,
			want: "recreate: container app gains or loses a request or limit of cpu, and a running container cannot lose one; container app " +
				"gains or loses a request or limit of memory, and a running container cannot lose one; " +
				"the QoS class changes from Burstable to BestEffort"},
		"the first": {base: edits{resources: "{}"}, after: sized, resize: inplace.ResizeAll,
			want: "recreate: container app gains or loses a request or limit of cpu, and a running container cannot lose one; " +
				"container app gains or loses a request or limit of memory, and a running container cannot lose one; " +
				"the QoS class changes from BestEffort to Burstable"},
		"with an image": {base: sized, before: none,
			after: edits{newImage: `"app:2"`, resources + "/requests/cpu": `"1"`, resizePolicy0: none[resizePolicy0]},
			want:  "in place: resizes app, restarts app"},
		"declared": {base: sized, before: none, after: edits{resources + "/requests/cpu": `"1"`, resizePolicy0: none[resizePolicy0]},
			want: "in place: resizes app, no restart"},
		"declared for another": {base: sized, before: none,
			after: edits{resources + "/requests/memory": `"1Mi"`, resizePolicy0: none[resizePolicy0]},
			want: "recreate: memory of container app changed, and neither its resizePolicy nor annotation stayput.dev/resize " +
				"says whether it needs a restart"},
		"undeclared": {base: sized, after: cpu,
			want: "recreate: cpu of container app changed, and neither its resizePolicy nor annotation stayput.dev/resize " +
				"says whether it needs a restart"},
		"switched off": {base: sized, before: none, after: edits{resources + "/requests/cpu": `"1"`, resizePolicy0: none[resizePolicy0]},
			resize: inplace.ResizeNone,
			want:   `recreate: cpu of container app changed, and annotation stayput.dev/resize is "native"`},
		"asks for a restart": {base: sized, before: restart,
			after: edits{resources + "/requests/cpu": `"1"`, resizePolicy0: restart[resizePolicy0]}, resize: inplace.ResizeAll,
			want: "in place: resizes app, restarts app"},
		"asks for a restart, and gets one": {base: sized, before: restart,
			after:  edits{newImage: `"app:2"`, resources + "/requests/cpu": `"1"`, resizePolicy0: restart[resizePolicy0]},
			resize: inplace.ResizeAll, want: "recreate: the resizePolicy of container app asks for a restart when its cpu changes, and it also " +
				"restarts for another change: it would restart twice"},
		"another one asks": {base: sized, before: restart,
			after: edits{resources + "/limits/memory": `"128Mi"`, resizePolicy0: restart[resizePolicy0]}, want: "in place: resizes app, no restart"},
		"asks, and nothing else says": {base: sized, before: restart,
			after: edits{resources + "/requests/cpu": `"1"`, resizePolicy0: restart[resizePolicy0]}, want: "in place: resizes app, restarts app"},
		"to guaranteed": {base: edits{"/spec/containers": `[{"name":"app","image":"app:1","resources":{"requests":{"cpu":"1","memory":"1Gi"},` +
			`"limits":{"cpu":"2","memory":"1Gi"}}}]`, "/spec/initContainers": ""},
			after: edits{resources + "/requests/cpu": `"2"`}, resize: inplace.ResizeAll,
			want: "recreate: the QoS class changes from Burstable to Guaranteed"},
		"of the other no restart": {base: sized, before: restart,
			after: edits{resources + "/requests/memory": `"1Mi"`, resizePolicy0: restart[resizePolicy0]}, want: "in place: resizes app, no restart"},
		"the policy itself": {base: sized, after: none, resize: inplace.ResizeAll, want: "recreate: /spec/containers/0/resizePolicy added"},
		"another resource": {base: sized, after: edits{resources + "/limits/nvidia.com~1gpu": `"1"`}, resize: inplace.ResizeAll,
			want: "recreate: /spec/containers/0/resources/limits/nvidia.com~1gpu added"},
		"an init container": {base: sized, after: edits{"/spec/initContainers/0/resources": `{"requests": {"cpu": "1"}}`},
			resize: inplace.ResizeAll, want: "recreate: /spec/initContainers/0/resources added"},
		"a sidecar": {base: edits{"/spec/initContainers": `[{"name":"side","image":"side:1","restartPolicy":"Always",` +
			`"resources":{"requests":{"cpu":"1"}}}]`},
			after: edits{"/spec/initContainers/0/resources/requests/cpu": `"2"`}, resize: inplace.ResizeAll,
			want: "recreate: /spec/initContainers/0/resources/requests/cpu changed"},
		"Windows": {base: sized, before: edits{"/spec/os": `{"name": "windows"}`},
			after: edits{"/spec/os": `{"name": "windows"}`, resources + "/requests/cpu": `"1"`}, resize: inplace.ResizeAll,
			want: "recreate: pods of Windows are not resized"},
		"resources of the pod": {base: sized, before: edits{"/spec/resources": `{"requests": {"cpu": "3"}}`},
			after:  edits{"/spec/resources": `{"requests": {"cpu": "3"}}`, resources + "/requests/cpu": `"1"`},
			resize: inplace.ResizeAll, want: "recreate: the pod has pod-level resources"},
		"another resource than is read": {base: edits{"/spec/containers/0/env": readsLimit}, before: sized,
			after:  edits{resources: `{"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}`},
			resize: inplace.ResizeAll, want: "in place: resizes app, no restart"},
		"another amount is read": {base: edits{"/spec/containers/0/env": readsLimit}, before: sized,
			after:  edits{resources: `{"requests": {"cpu": "100m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}}`},
			resize: inplace.ResizeAll, want: "in place: resizes app, no restart"},
		"the amount that a variable reads": {base: edits{"/spec/containers/0/env": readsLimit}, before: sized,
			after:  edits{resources: `{"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}`},
			resize: inplace.ResizeAll, want: "recreate: limits.memory of container app is read by variable L through the downward API"},
		"a request that follows the limit": {
			base:   edits{"/spec/containers/0/env": strings.Replace(readsLimit, "limits.memory", "requests.memory", 1)},
			before: edits{resources: `{"requests": {"cpu": "1"}, "limits": {"memory": "64Mi"}}`},
			after:  edits{resources: `{"requests": {"cpu": "1"}, "limits": {"memory": "128Mi"}}`}, resize: inplace.ResizeAll,
			want: "recreate: requests.memory of container app is read by variable L through the downward API"},
		"the amount that a volume reads": {base: edits{resources: sized[resources], "/spec/volumes": readsCPU}, after: cpu,
			resize: inplace.ResizeAll,
			want:   "recreate: requests.cpu of container app is read by volume info through the downward API"},
		"another amount than the volume reads": {base: edits{resources: sized[resources], "/spec/volumes": readsCPU},
			after: edits{resources + "/limits/memory": `"128Mi"`}, resize: inplace.ResizeAll,
			want: "in place: resizes app, no restart"},
		"what is read has no amount": {base: edits{resources: sized[resources],
			"/spec/volumes": strings.Replace(readsCPU, "requests.cpu", "limits.ephemeral-storage", 1)}, after: cpu, resize: inplace.ResizeAll,
			want: "in place: resizes app, no restart"},
	} {
		t.Run(name, func(t *testing.T) {
			change := Compare(edited(t, test.base, test.before), edited(t, test.base, test.after), inplace.Rules{Resize: test.resize})
			if got := change.String(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A pod may differ from its template: it may have other resources, and admission may have added containers.
func TestResizeOperations(t *testing.T) {
	amounts := func(texts ...string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for i := 0; i < len(texts); i += 2 {
			list[corev1.ResourceName(texts[i])] = resource.MustParse(texts[i+1])
		}
		return list
	}
	wants := func(texts ...string) []corev1.Container {
		return []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: amounts(texts...)}}}
	}
	template := wants("cpu", "200m", "memory", "64Mi")
	for name, test := range map[string]struct {
		has  corev1.ResourceRequirements
		gets []corev1.Container
		want string
	}{
		"nothing":  {want: "null"},
		"the same": {has: corev1.ResourceRequirements{Requests: amounts("cpu", "0.2", "memory", "65536Ki")}, want: "null"},
		"other cpu": {has: corev1.ResourceRequirements{Requests: amounts("cpu", "0.1", "memory", "64Mi")},
			want: `[{"op":"replace","path":"/spec/containers/1/resources/requests/cpu","value":"200m"}]`},
		"as the template has it": {has: corev1.ResourceRequirements{Requests: amounts("cpu", "0.1", "memory", "67108864")},
			gets: wants("cpu", "0.1", "memory", "80Mi"),
			want: `[{"op":"replace","path":"/spec/containers/1/resources/requests/memory","value":"80Mi"}]`},
		"in digits": {has: corev1.ResourceRequirements{Requests: amounts("cpu", "0.1", "memory", "64Mi")},
			gets: wants("cpu", "1", "memory", "83886080"),
			want: `[{"op":"replace","path":"/spec/containers/1/resources/requests/cpu","value":"1"},{"op":"replace",` +
				`"path":"/spec/containers/1/resources/requests/memory","value":"83886080"}]`},
		"a limit stays": {has: corev1.ResourceRequirements{Requests: amounts("cpu", "0.1"), Limits: amounts("cpu", "1")},
			want: `[{"op":"replace","path":"/spec/containers/1/resources/requests/cpu","value":"200m"}]`},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "mesh"}, {Name: "app", Resources: test.has}}}}
		if test.gets == nil {
			test.gets = template
		}
		raw, err := json.Marshal(Differing(pod, test.gets, func(string) bool { return true }).ResizeOperations(pod))
		if err != nil || string(raw) != test.want {
			t.Errorf("%s: got  %s\nwant %s", name, raw, test.want)
		}
	}
}
