package observe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/randfill"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

const updateJSON = `{
	"deployment": {"metadata": {"name": "web", "namespace": "shop", "uid": "d", "resourceVersion": "1", "generation": 2},
		"spec": {"replicas": 3,
		"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}, "template": %[2]s}, "status": {"observedGeneration": 2}},
	"old": {"metadata": {"name": "web-1", "namespace": "shop", "uid": "r1", "resourceVersion": "1",
			"labels": {"pod-template-hash": "1", "stayput.dev/updating": "1"}},
		"spec": {"replicas": 2, "template": %[1]s}, "status": {"replicas": 3}},
	"new": {"metadata": {"name": "web-2", "namespace": "shop", "uid": "r2", "resourceVersion": "1",
			"labels": {"pod-template-hash": "2", "stayput.dev/updating": "1"}},
		"spec": {"replicas": 0, "template": %[2]s}, "status": {"replicas": 0}}
}`

const updatedTemplateJSON = `{"metadata": {"labels": {"app": "web", "version": %[1]q}, "annotations": {"example.com/version": %[1]q}},
	"spec": {"containers": [{"name": "app", "image": "app:%[1]s"}],
		"initContainers": [{"name": "mesh", "image": "mesh:%[1]s", "restartPolicy": "Always"}]}}`

// updating returns an update in progress. Its first pod is out of service and may be patched. The pods have every field
// that a pod can have.
func updating(t *testing.T, seed int64) *deployments.Rollout {
	t.Helper()
	var read struct {
		Deployment *apps.Deployment
		Old, New   *apps.ReplicaSet
	}
	from, to := fmt.Sprintf(updatedTemplateJSON, "1"), fmt.Sprintf(updatedTemplateJSON, "2")
	to = strings.Replace(to, `"spec": {`, `"spec": {"tolerations": [{"key": "example.com/tolerated", "operator": "Exists"}], `, 1)
	if err := json.Unmarshal([]byte(fmt.Sprintf(updateJSON, from, to)), &read); err != nil {
		t.Fatal(err)
	}
	rollout := &deployments.Rollout{
		Deployment:  read.Deployment,
		ReplicaSets: []*apps.ReplicaSet{read.Old, read.New},
		Seen: engine.Snapshot{Mode: inplace.ModeInPlace, Now: time.Unix(1_000_000, 0),
			Rules: inplace.Rules{Annotations: []string{"example.com/version"}}, Settings: inplace.Settings{PrePullParallelism: 1}, Pull: prepull.Pulling{WaitImage: prepull.WaitImage{Image: "stayput"}}},
	}
	ready := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.0", ContainerRuntimeVersion: "containerd://2.1.0"}}
	for i := range 3 {
		node := fmt.Sprintf("node-%d", i)
		rollout.Seen.Pods = append(rollout.Seen.Pods, furnished(fmt.Sprintf("web-%d", i), node, seed+int64(i)))
		rollout.Seen.Nodes = append(rollout.Seen.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}, Status: ready})
	}
	rollout.Seen.Nodes[0].Status.Images = []corev1.ContainerImage{{Names: []string{"app:2"}}, {Names: []string{"mesh:2"}}}
	// A kubelet of 1.35 or newer may refuse an image that its node lists.
	rollout.Seen.Nodes[0].Status.NodeInfo.KubeletVersion = "v1.34.4"
	out := rollout.Seen.Pods[0]
	out.Status.Conditions[1] = readiness.TakenOutUntil(out, rollout.Seen.Now, rollout.Seen.Now)
	rollout.Seen.DryRun.UpdateRevision = read.New.UID
	if seed%40 == 0 { // admission adds to new pods what the second pod has
		rollout.Seen.DryRun.Pod = rollout.Seen.Pods[1].DeepCopy()
	}
	return rollout
}

// furnished returns a pod of web-1. All fields that do not matter here have random values.
func furnished(name, node string, seed int64) *corev1.Pod {
	pod := &corev1.Pod{}
	randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(12).Fill(pod)
	uniqueNames(pod)
	pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion, pod.Generation, pod.DeletionTimestamp = "shop", name, types.UID(name), "1", 1, nil
	pod.CreationTimestamp = metav1.NewTime(time.Unix(1, 0))
	pod.OwnerReferences = append([]metav1.OwnerReference{{Name: "other"}}, controlledBy("ReplicaSet", "web-1", "r1"))
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if seed%2 == 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "example.com/version", "2")
	}
	pod.Labels["app"], pod.Labels["version"], pod.Labels["pod-template-hash"] = "web", "1", "1"
	if seed%3 == 0 {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "example.com/tolerated", Operator: corev1.TolerationOpExists})
	}
	pod.Spec.NodeName = node
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "app", Image: "app:1"})
	pod.Spec.InitContainers = append(pod.Spec.InitContainers,
		corev1.Container{Name: "mesh", Image: "mesh:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)})
	pod.Status.Phase, pod.Status.ObservedGeneration = corev1.PodRunning, 1
	pod.Status.Conditions = []corev1.PodCondition{{Type: "other"}}
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
	}
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
		Name: "app", Image: "app:1", ImageID: "1", ContainerID: "1", Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{
		Name: "mesh", Image: "mesh:1", ImageID: "1", ContainerID: "1", Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	return pod
}

// uniqueNames names the pod's containers, and what its status says of them, as the API server requires it.
func uniqueNames(pod *corev1.Pod) {
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Name = fmt.Sprint("container-", i)
	}
	for i := range pod.Spec.InitContainers {
		pod.Spec.InitContainers[i].Name = fmt.Sprint("init-", i)
	}
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Name = fmt.Sprint("container-", i)
	}
	for i := range pod.Status.InitContainerStatuses {
		pod.Status.InitContainerStatuses[i].Name = fmt.Sprint("init-", i)
	}
}

// written returns one line for each step, with what the step writes.
func written(t *testing.T, all []steps.Step) []string {
	t.Helper()
	var lines []string
	for _, step := range all {
		var body any
		switch s := step.(type) {
		case steps.PatchPod:
			body = s.Operations
		case steps.SetReady:
			body = s.Operations
		case steps.CreatePrePullPod:
			body = s.Pod
		default:
			body = step.Describe()
		}
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%T %s", step, raw))
	}
	return lines
}

// TestTrimmedPodsAreUpdatedAsWholeOnes checks that a plan writes the same for whole pods and for trimmed pods. Above
// all, a map or a list from which something was dropped must not count as missing.
func TestTrimmedPodsAreUpdatedAsWholeOnes(t *testing.T) {
	kinds := map[string]int{}
	for seed := range int64(200) {
		rollout := updating(t, seed*10)
		var back []steps.Step
		for _, pod := range rollout.Seen.Pods {
			back = append(back, podstate.PutBack(pod, rollout.Seen.Now))
		}
		plan := rollout.Plan()
		whole := append(append(written(t, plan.Steps), plan.Message),
			written(t, append(back, rollout.FallBack(inplace.Reason{}).Steps...))...)
		back = nil
		for _, pod := range rollout.Seen.Pods {
			trim(pod)
			back = append(back, podstate.PutBack(pod, rollout.Seen.Now))
		}
		plan = rollout.Plan()
		trimmed := append(append(written(t, plan.Steps), plan.Message),
			written(t, append(back, rollout.FallBack(inplace.Reason{}).Steps...))...)
		if !slices.Equal(whole, trimmed) {
			t.Fatalf("seed %d: for whole pods Stayput writes\n%s\nfor trimmed pods\n%s",
				seed, strings.Join(whole, "\n"), strings.Join(trimmed, "\n"))
		}
		for _, line := range trimmed {
			kind, _, _ := strings.Cut(line, " ")
			kinds[kind]++
		}
	}
	for _, kind := range []string{"steps.PatchPod", "steps.SetReady", "steps.CreatePrePullPod"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s among %v", kind, kinds)
		}
	}
}

// TestTrimmedPodsRestartToResize checks that trimming keeps the resize policies that require a restart. Stayput drains
// a pod for a resize only if a container of the pod itself has such a policy.
func TestTrimmedPodsRestartToResize(t *testing.T) {
	of := func(cpu string, policy corev1.ResourceResizeRestartPolicy) corev1.Container {
		return corev1.Container{Name: "app", Image: "app:1",
			Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
			ResizePolicy: []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: policy}}}
	}
	for policy, restarts := range map[corev1.ResourceResizeRestartPolicy]bool{corev1.RestartContainer: true, corev1.NotRequired: false} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{of("100m", policy)}}}
		trim(pod)
		if got := edit.Differing(pod, []corev1.Container{of("200m", policy)}, func(string) bool { return true }); got.Restarts() != restarts {
			t.Errorf("%s: a restart is expected: %t", policy, got.Restarts())
		}
	}
}

// TestTrimmedPodsNameTheirClaims checks that trimming keeps which claims a pod has: those of a StatefulSet's claim templates count.
func TestTrimmedPodsNameTheirClaims(t *testing.T) {
	claimed := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-db-0"}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "config"}, {Name: "data", VolumeSource: claimed}}}}
	trim(pod)
	volumes := pod.Spec.Volumes
	if len(volumes) != 1 || volumes[0].Name != "data" || volumes[0].PersistentVolumeClaim.ClaimName != "data-db-0" {
		t.Errorf("volumes %v are kept", volumes)
	}
}

// TestTrimmedPrePullPodsNameTheirImages checks that trimming keeps the volumes of a pre-pull pod that are images. The
// kubelet pulls these images.
func TestTrimmedPrePullPodsNameTheirImages(t *testing.T) {
	prePullPod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "config"},
		{Name: "image", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "app:2"}}}}}}
	trim(prePullPod)
	if volumes := prePullPod.Spec.Volumes; len(volumes) != 1 || volumes[0].Image.Reference != "app:2" {
		t.Errorf("volumes %v are kept", volumes)
	}
}

// TestTrimmedContainersTellWhetherOnlyTheImageDiffers checks the digest that stands for what trimming drops.
func TestTrimmedContainersTellWhetherOnlyTheImageDiffers(t *testing.T) {
	same := func(a, b corev1.Container) bool { return trimContainer(a).Args[0] == trimContainer(b).Args[0] }
	proxy := func(change func(*corev1.Container)) corev1.Container {
		c := corev1.Container{Name: "proxy", Image: "proxy:1", Args: []string{"--level=1"}, Env: []corev1.EnvVar{{Name: "A", Value: "1"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "token-x", MountPath: "/token"}}}
		change(&c)
		return c
	}
	before := proxy(func(*corev1.Container) {})
	for name, test := range map[string]struct {
		change func(*corev1.Container)
		same   bool
	}{
		"image":               {func(c *corev1.Container) { c.Image = "proxy:2" }, true},
		"CPU":                 {func(c *corev1.Container) { c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")} }, true},
		"name of a volume":    {func(c *corev1.Container) { c.VolumeMounts[0].Name = "token-y" }, true},
		"path of a volume":    {func(c *corev1.Container) { c.VolumeMounts[0].MountPath = "/other" }, false},
		"argument":            {func(c *corev1.Container) { c.Args = []string{"--level=2"} }, false},
		"value of a variable": {func(c *corev1.Container) { c.Env[0].Value = "2" }, false},
		"port":                {func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 1}} }, false},
	} {
		if got := same(before, proxy(test.change)); got != test.same {
			t.Errorf("%s: the same: %t", name, got)
		}
	}
	if trimmed := trimContainer(before); !same(trimmed, before) {
		t.Error("a container that is trimmed twice has another digest")
	}
}

// TestTrimKeepsHooks: the cache keeps what other controllers hold pods with, of any name, and no other annotation of theirs.
func TestTrimKeepsHooks(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		inplace.PreRestartHookPrefix + "lb": "", "example.com/hook": "", "hook.stayput.dev/lb": ""}}}
	trim(pod)
	if got := inplace.HooksOf(map[string]string{inplace.AnnotationPreRestartHooks: "lb"}).On(pod); len(got) != 1 || len(pod.Annotations) != 1 {
		t.Errorf("the pod keeps %v", pod.Annotations)
	}
}
