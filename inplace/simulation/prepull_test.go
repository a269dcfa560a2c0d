package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/sample"
)

// pullFixture returns a Deployment of 4 with pods p1 … p4 on nodes n1 … n4 that is edited from app:1 to app:2. Two nodes pull at a time,
// and all pods may be unavailable.
func pullFixture(changes ...func(*deployments.Rollout)) *deployments.Rollout {
	r := fixture.New(4, fixture.App{Image: "app:2", Sidecar: "side:1"})
	r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(4))
	r.Seen.Settings.PrePullParallelism, r.Seen.Pull.WaitImage = 2, fixture.WaitImage
	oldRS, newRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "app:1", Sidecar: "side:1"}, 4),
		fixture.ReplicaSetOf(r, "b", fixture.App{Image: "app:2", Sidecar: "side:1"}, 0)
	oldRS.Labels[inplace.LabelUpdating], newRS.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
	for i := range 4 {
		r.Seen.Nodes = append(r.Seen.Nodes, fixture.MountingNode(fmt.Sprint("n", i+1)))
		fixture.PodOf(r, fmt.Sprint("p", i+1), oldRS, func(pod *corev1.Pod) { pod.Spec.NodeName = fmt.Sprint("n", i+1) })
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

// updateRevisionIs edits the Deployment to another image than app:2.
func updateRevisionIs(image string) func(*deployments.Rollout) {
	return func(r *deployments.Rollout) {
		template, newRS := fixture.App{Image: image, Sidecar: "side:1"}.Template(), r.UpdateRevision()
		r.Deployment.Spec.Template, newRS.Spec.Template = template, template
		r.Seen.DryRun = fixture.Admitted(newRS)
	}
}

// prePullPodOn adds a pre-pull pod of the update revision whose container has that state.
func prePullPodOn(node string, state corev1.ContainerState, changes ...func(*corev1.Pod)) func(*deployments.Rollout) {
	return func(r *deployments.Rollout) {
		at := slices.IndexFunc(r.Seen.Pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == node })
		prePullPod := prepull.NewPod(prepull.OwnedBy(r.Deployment, r.UpdateRevision().UID, "Deployment", r.Deployment), r.Seen.Pods[at],
			[]prepull.VolumeImage{{Reference: "app:2", Policy: corev1.PullIfNotPresent}}, r.Seen.Pull.WaitImage)
		prePullPod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: prepull.WaitContainer, State: state}}
		for _, change := range changes {
			change(prePullPod)
		}
		r.Seen.Pull.PrePullPods = append(r.Seen.Pull.PrePullPods, prePullPod)
	}
}

func waitingFor(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func isRunning() corev1.ContainerState { return fixture.RunningSince(fixture.Start) }

func nodeIs(at int, change func(*corev1.Node)) func(*deployments.Rollout) {
	return func(r *deployments.Rollout) { change(r.Seen.Nodes[at]) }
}

func podIs(at int, changes ...func(*corev1.Pod)) func(*deployments.Rollout) {
	return func(r *deployments.Rollout) {
		for _, change := range changes {
			change(r.Seen.Pods[at])
		}
	}
}

func lists(images ...string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{Names: images})
	}
}

func onKubelet(version string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Status.NodeInfo.KubeletVersion = version }
}

// ranBefore marks a pod whose container had the image with that ID before it was patched.
func ranBefore(id string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		mark := readiness.Move{Hash: "a", Containers: map[string]readiness.MovedContainer{"app": {Image: "app:1", ImageID: id}}}
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationMove, mark.String())
	}
}

func policyIs(policy corev1.PullPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Containers[0].ImagePullPolicy = policy }
}

func quotaOf(hard, used string, scopes ...corev1.ResourceQuotaScope) func(*deployments.Rollout) {
	return func(r *deployments.Rollout) {
		quota := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Scopes: scopes}}
		quota.Status.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse(hard)}
		quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse(used)}
		r.Seen.Pull.Quotas = append(r.Seen.Pull.Quotas, quota)
	}
}

// told returns the plan's steps about pods and pre-pull pods, in order.
func told(plan steps.Plan) string {
	var all []string
	for _, step := range plan.Steps {
		switch s := step.(type) {
		case steps.SetReady:
			all = append(all, map[bool]string{true: "out ", false: "back "}[s.Out]+s.Pod.Name)
		case steps.PatchPod:
			all = append(all, "patch "+s.Pod.Name)
		case steps.CreatePrePullPod:
			all = append(all, "pull "+s.Pod.Spec.NodeName)
		case steps.DeletePrePullPod:
			all = append(all, "drop "+s.Pod.Spec.NodeName)
		}
	}
	return strings.Join(all, ", ")
}

// pullsOnly keeps all pods.
func pullsOnly(r *deployments.Rollout) { r.Seen.Settings.Partition.Value = "100%" }

func TestPull(t *testing.T) {
	notFound := waitingFor("ErrImagePull", `failed to pull "docker.io/library/app:2": not found`)
	noSandboxFor := func(age time.Duration) func(*corev1.Pod) {
		return func(prePullPod *corev1.Pod) {
			prePullPod.CreationTimestamp = metav1.NewTime(fixture.Start.Add(-age))
			prePullPod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}}
		}
	}
	terminatingFor := func(age time.Duration) func(*corev1.Pod) {
		return func(prePullPod *corev1.Pod) {
			prePullPod.DeletionTimestamp = &metav1.Time{Time: fixture.Start.Add(-age)}
		}
	}
	creating, digest := waitingFor("ContainerCreating", ""), sample.Digests[0]
	oldKubelet := nodeIs(0, onKubelet("v1.35.4"))
	stuck := func(pod *corev1.Pod) {
		fixture.Unready(pod)
		pod.Status.ContainerStatuses[0].State = waitingFor("ImagePullBackOff", "")
	}
	for name, test := range map[string]struct {
		changes []func(*deployments.Rollout)
		want    string
		skipped string // part of why nothing is pulled on some node
		waits   string // part of the plan's message
	}{
		"two nodes at a time": {nil, "pull n1, pull n2", "", "waiting for image app:2 on node n1"},
		"nothing is pulled first": {[]func(*deployments.Rollout){func(r *deployments.Rollout) { r.Seen.Settings.PrePullParallelism = 0 }},
			"out p1, out p2, out p3, out p4", "", ""},
		"those that are unready first": {[]func(*deployments.Rollout){podIs(3, fixture.Unready)}, "pull n4, pull n1", "", ""},
		"one that does not serve may exceed the budget": {[]func(*deployments.Rollout){prePullPodOn("n1", isRunning()),
			prePullPodOn("n2", isRunning()), podIs(3, fixture.Unready),
			func(r *deployments.Rollout) {
				r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
			}}, "pull n4", "", "node n4"},
		"one that does not serve ignores the quota": {[]func(*deployments.Rollout){prePullPodOn("n1", isRunning()),
			prePullPodOn("n2", isRunning()), podIs(3, fixture.Unready), quotaOf("10", "8")}, "out p4, out p1, out p2", "ResourceQuota q", ""},
		"one that does not serve waits for parallel pulls": {[]func(*deployments.Rollout){prePullPodOn("n1", creating),
			prePullPodOn("n2", creating), podIs(3, fixture.Unready)}, "", "", "node n4"},
		"a quota where images are pulled only": {[]func(*deployments.Rollout){prePullPodOn("n1", isRunning()),
			prePullPodOn("n2", isRunning()), quotaOf("10", "8"), pullsOnly}, "", "ResourceQuota q", "new images on 2 of 4 nodes"},
		"a quota where images are pulled only, and one is being pulled": {[]func(*deployments.Rollout){prePullPodOn("n1", isRunning()),
			prePullPodOn("n2", creating), quotaOf("10", "8"), pullsOnly}, "", "", "waiting for image app:2 on node n2"},
		"two are being pulled": {[]func(*deployments.Rollout){prePullPodOn("n1", waitingFor("ContainerCreating", "")),
			prePullPodOn("n2", corev1.ContainerState{})}, "", "", "node n1"},
		"the first have it": {[]func(*deployments.Rollout){prePullPodOn("n1", isRunning()),
			prePullPodOn("n2", corev1.ContainerState{})}, "out p1", "", "node n2"},
		"the next while the first move": {[]func(*deployments.Rollout){prePullPodOn("n1", isRunning()), podIs(0, fixture.Out)},
			"pull n2, pull n3", "", ""},
		"the node lists it": {[]func(*deployments.Rollout){nodeIs(1, lists("docker.io/library/app:2"))}, "pull n1, pull n2", "", ""},
		"an old kubelet's node lists it": {[]func(*deployments.Rollout){nodeIs(1, onKubelet("v1.34.9")),
			nodeIs(1, lists("docker.io/library/app@sha256:1", "docker.io/library/app:2"))}, "pull n1, pull n3, out p2", "", ""},
		"the node lists it, and its container had it before": {[]func(*deployments.Rollout){podIs(1, ranBefore("docker.io/library/app"+digest)),
			nodeIs(1, lists("docker.io/library/app"+digest, "docker.io/library/app:2"))}, "pull n1, pull n3, out p2", "", ""},
		"the node no longer lists what its container had": {[]func(*deployments.Rollout){
			podIs(1, ranBefore("docker.io/library/app"+digest))}, "pull n1, pull n2", "", ""},
		"its container had another image": {[]func(*deployments.Rollout){podIs(1, ranBefore("docker.io/library/app"+sample.Digests[1])),
			nodeIs(1, lists("docker.io/library/app"+digest, "docker.io/library/app:2"))}, "pull n1, pull n2", "", ""},
		"its container had the image from elsewhere": {[]func(*deployments.Rollout){podIs(1, ranBefore("r.io/app"+digest)),
			nodeIs(1, lists("r.io/app"+digest, "docker.io/library/app"+digest, "docker.io/library/app:2"))}, "pull n1, pull n2", "", ""},
		"its container had the digest before": {[]func(*deployments.Rollout){updateRevisionIs("app:2" + digest),
			podIs(1, ranBefore("docker.io/library/app"+digest)), nodeIs(1, lists("docker.io/library/app"+digest))},
			"pull n1, pull n3, out p2", "", ""},
		"the node lists another digest": {[]func(*deployments.Rollout){updateRevisionIs("app:2" + sample.Digests[0]),
			nodeIs(1, lists("docker.io/library/app"+sample.Digests[1], "docker.io/library/app:2"))}, "pull n1, pull n2", "", ""},
		"the registry is always asked": {[]func(*deployments.Rollout){nodeIs(0, lists("app:2")),
			podIs(0, policyIs(corev1.PullAlways))}, "pull n1, pull n2", "", ""},
		"another pod there runs it": {[]func(*deployments.Rollout){func(r *deployments.Rollout) {
			newRS := r.ReplicaSets[1]
			r.Deployment.Spec.Replicas, newRS.Spec.Replicas, newRS.Status.Replicas = new(int32(5)), new(int32(1)), 1
			fixture.PodOf(r, "q", newRS, func(pod *corev1.Pod) { pod.Spec.NodeName = "n3" })
		}}, "pull n1, pull n2, out p3", "", ""},
		"another pod there runs it under another name": {[]func(*deployments.Rollout){func(r *deployments.Rollout) {
			newRS := r.ReplicaSets[1]
			r.Deployment.Spec.Replicas, newRS.Spec.Replicas, newRS.Status.Replicas = new(int32(5)), new(int32(1)), 1
			fixture.PodOf(r, "q", newRS, func(pod *corev1.Pod) {
				pod.Spec.NodeName, pod.Spec.Containers[0].Image = "n1", "docker.io/library/app:2"
			})
		}}, "pull n1, pull n2", "", ""},
		"one pod that serves for two on a node": {[]func(*deployments.Rollout){podIs(1, func(pod *corev1.Pod) { pod.Spec.NodeName = "n1" })},
			"pull n1, pull n3", "", ""},

		"an old kubelet": {[]func(*deployments.Rollout){nodeIs(0,
			func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = "v1.34.9" })}, "pull n2, pull n3, out p1", `node n1: kubelet "v1.34.9"`, ""},
		"an old runtime": {[]func(*deployments.Rollout){nodeIs(0,
			func(n *corev1.Node) { n.Status.NodeInfo.ContainerRuntimeVersion = "containerd://2.0.9" })}, "pull n2, pull n3, out p1",
			"containerd://2.0.9", ""},
		"CRI-O": {[]func(*deployments.Rollout){nodeIs(0,
			func(n *corev1.Node) { n.Status.NodeInfo.ContainerRuntimeVersion = "cri-o://1.31.0" })}, "pull n1, pull n2", "", ""},
		"a simulated node": {[]func(*deployments.Rollout){nodeIs(0,
			func(n *corev1.Node) { n.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "fake"} })},
			"pull n2, pull n3, out p1", "node n1", ""},
		"Windows": {[]func(*deployments.Rollout){nodeIs(0,
			func(n *corev1.Node) { n.Status.NodeInfo.OperatingSystem = "windows" })}, "pull n2, pull n3, out p1", "Windows", ""},
		"a node that is gone": {[]func(*deployments.Rollout){func(r *deployments.Rollout) { r.Seen.Nodes = r.Seen.Nodes[1:] }},
			"pull n2, pull n3, out p1", "", ""},
		"Stayput's image is not known": {[]func(*deployments.Rollout){
			func(r *deployments.Rollout) { r.Seen.Pull.WaitImage = prepull.WaitImage{} }},
			"out p1, out p2, out p3, out p4", "own image", ""},
		"refused": {[]func(*deployments.Rollout){func(r *deployments.Rollout) {
			r.Seen.Pull.Refused = prepull.Refused{UpdateRevision: "b", Why: "policy"}
		}}, "out p1, out p2, out p3, out p4", "policy", ""},
		"refused for another": {[]func(*deployments.Rollout){func(r *deployments.Rollout) {
			r.Seen.Pull.Refused = prepull.Refused{UpdateRevision: "c", Why: "policy"}
		}}, "pull n1, pull n2", "", ""},
		"the node does not take it": {[]func(*deployments.Rollout){prePullPodOn("n1", corev1.ContainerState{}, func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfpods", Message: "full"}
		})}, "pull n2, pull n3, out p1", "node n1: OutOfpods: full", ""},
		"no sandbox yet": {[]func(*deployments.Rollout){prePullPodOn("n1", creating, noSandboxFor(time.Second))},
			"pull n2", "", "node n1"},
		"no sandbox": {[]func(*deployments.Rollout){prePullPodOn("n1", creating, noSandboxFor(time.Minute))},
			"pull n2, out p1", "node n1: the kubelet cannot start", ""},
		"no sandbox, of an older kubelet": {[]func(*deployments.Rollout){prePullPodOn("n1", creating, noSandboxFor(time.Hour)),
			oldKubelet}, "pull n2", "", "node n1"},
		"its sandbox is gone": {[]func(*deployments.Rollout){prePullPodOn("n1", isRunning(), noSandboxFor(time.Hour))},
			"pull n2, out p1", "", ""},
		// 1 of surge and 1 to spare
		"a quota with room for one": {[]func(*deployments.Rollout){quotaOf("10", "7")}, "pull n1", "", ""},
		"a quota without room": {[]func(*deployments.Rollout){quotaOf("10", "8")}, "out p1, out p2, out p3, out p4",
			"ResourceQuota q", ""},
		"a quota that pre-pull pods have filled": {[]func(*deployments.Rollout){quotaOf("10", "8"),
			prePullPodOn("n1", corev1.ContainerState{})}, "", "", "node n1"},
		"a quota for others": {[]func(*deployments.Rollout){quotaOf("10", "8", corev1.ResourceQuotaScopeBestEffort)},
			"pull n1, pull n2", "", ""},
		"the tightest of several quotas": {[]func(*deployments.Rollout){quotaOf("10", "0"),
			quotaOf("10", "7", corev1.ResourceQuotaScopeNotTerminating)}, "pull n1", "", ""},
		"a bad image": {[]func(*deployments.Rollout){prePullPodOn("n1", notFound), prePullPodOn("n2", isRunning())},
			"out p2", "", `on node n1: failed to pull "docker.io/library/app:2": not found`},
		"two bad ones are enough": {[]func(*deployments.Rollout){prePullPodOn("n1", notFound), prePullPodOn("n2", notFound)},
			"", "", "not found"},
		"Stayput's image cannot be pulled": {[]func(*deployments.Rollout){prePullPodOn("n1",
			waitingFor("ErrImagePull", `"stayput/stayput:v1": denied`))}, "pull n2, out p1", "", ""},
		"Stayput's image, renamed by admission, cannot be pulled": {[]func(*deployments.Rollout){prePullPodOn("n1",
			waitingFor("ErrImagePull", `"mirror/stayput:v1": not found`),
			func(p *corev1.Pod) { p.Spec.Containers[0].Image = "mirror/stayput:v1" })}, "pull n2, out p1", "", ""},
		"the pre-pull pod cannot run": {[]func(*deployments.Rollout){prePullPodOn("n1", waitingFor("CreateContainerError", "x"))},
			"pull n2, out p1", "", ""},
		"a pod that cannot start anyway": {[]func(*deployments.Rollout){podIs(0, stuck)}, "pull n2, pull n3, out p1", "", ""},
		"a pod that crashes waits":       {[]func(*deployments.Rollout){podIs(0, fixture.Unready)}, "pull n1, pull n2", "", ""},
		"a pod that is on no node yet": {[]func(*deployments.Rollout){podIs(0, fixture.Unready,
			func(pod *corev1.Pod) { pod.Spec.NodeName = "" })}, "pull n2, pull n3, out p1", "", ""},
		"a pod on a node that is down": {[]func(*deployments.Rollout){podIs(0, fixture.Unready),
			nodeIs(0, func(n *corev1.Node) { n.Status.Conditions = nil })}, "pull n2, pull n3", "", ""},
		"drained for another image": {[]func(*deployments.Rollout){podIs(0, fixture.Out)}, "back p1, pull n1, pull n2", "", ""},
		"a pre-pull pod of another update revision": {[]func(*deployments.Rollout){prePullPodOn("n1", isRunning(),
			func(p *corev1.Pod) { p.Name = "old" })}, "drop n1, pull n1, pull n2", "", ""},
		"a pre-pull pod that is terminating": {[]func(*deployments.Rollout){prePullPodOn("n1", isRunning(), terminatingFor(time.Second))},
			"pull n2, pull n3", "", ""},
		"a pre-pull pod that a finalizer keeps": {[]func(*deployments.Rollout){prePullPodOn("n1", isRunning(), terminatingFor(time.Minute))},
			"pull n2, pull n3, out p1", "node n1: pod", ""},
		"a pre-pull pod that lacks an image": {[]func(*deployments.Rollout){prePullPodOn("n1", isRunning(),
			func(p *corev1.Pod) { p.Spec.Volumes[0].Image.Reference = "other" })}, "drop n1, pull n2", "", ""},
		"paused": {[]func(*deployments.Rollout){func(r *deployments.Rollout) { r.Deployment.Spec.Paused = true }}, "", "", ""},
		"the update fell back": {[]func(*deployments.Rollout){prePullPodOn("n1", isRunning()),
			func(r *deployments.Rollout) {
				r.Seen.Fallback.Hash = r.TemplateHash()
				r.ReplicaSets[1].Labels[inplace.LabelRenewed] = inplace.FormatTime(fixture.Start) // nudged just now
			}}, "drop n1", "", ""},
		"nothing is pulled first any more": {[]func(*deployments.Rollout){prePullPodOn("n1", isRunning()),
			func(r *deployments.Rollout) { r.Seen.Settings.PrePullParallelism = 0 }}, "drop n1, out p1, out p2, out p3, out p4", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			plan := pullFixture(test.changes...).Plan()
			if got := told(plan); got != test.want {
				t.Errorf("it does %q, want %q", got, test.want)
			}
			if !strings.Contains(plan.NotPulled, test.skipped) || (plan.NotPulled == "") != (test.skipped == "") {
				t.Errorf("nothing is pulled because %q, want %q", plan.NotPulled, test.skipped)
			}
			if !strings.Contains(plan.Message, test.waits) {
				t.Errorf("it says %q, want %q", plan.Message, test.waits)
			}
		})
	}
}

// TestPullOfASidecar: the image of a sidecar is pulled like any, by its own pull policy, and not on nodes where a pod of the workload runs
// it.
func TestPullOfASidecar(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*deployments.Rollout)
		want   string
	}{
		"no node has it":    {func(*deployments.Rollout) {}, "pull n1, pull n2"},
		"the node lists it": {nodeIs(1, lists("mesh:2")), "pull n1, pull n2"},
		"an old kubelet's node lists it": {func(r *deployments.Rollout) {
			nodeIs(1, onKubelet("v1.34.9"))(r)
			nodeIs(1, lists("mesh:2"))(r)
		}, "pull n1, pull n3, out p2"},
		"the registry is always asked": {func(r *deployments.Rollout) {
			nodeIs(0, lists("mesh:2"))(r)
			r.Seen.Pods[0].Spec.InitContainers[1].ImagePullPolicy = corev1.PullAlways
		}, "pull n1, pull n2"},
		"another pod there runs it": {func(r *deployments.Rollout) {
			newRS := r.ReplicaSets[1]
			r.Deployment.Spec.Replicas, newRS.Spec.Replicas, newRS.Status.Replicas = new(int32(5)), new(int32(1)), 1
			fixture.PodOf(r, "q", newRS, func(pod *corev1.Pod) { pod.Spec.NodeName = "n3" })
		}, "pull n1, pull n2, out p3"},
		"the sidecar cannot start anyway": {podIs(0, func(pod *corev1.Pod) {
			fixture.Unready(pod)
			pod.Status.InitContainerStatuses[0].State = waitingFor("ImagePullBackOff", "")
		}), "pull n2, pull n3, out p1"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := pullFixture(toMesh2, test.change).Plan()
			if got := told(plan); got != test.want {
				t.Errorf("it does %q, want %q", got, test.want)
			}
			for _, step := range plan.Steps {
				if pull, ok := step.(steps.CreatePrePullPod); ok && !slices.Equal(steps.References(pull.Pod), []string{"mesh:2"}) {
					t.Errorf("the pre-pull pod has %q", steps.References(pull.Pod))
				}
			}
		})
	}
}

// toMesh2 edits the fixture's Deployment from mesh:1 to mesh:2 instead.
func toMesh2(r *deployments.Rollout) {
	before, after := fixture.App{Image: "app:1", Mesh: "mesh:1"}.Template(), fixture.App{Image: "app:1", Mesh: "mesh:2"}.Template()
	oldRS, newRS := r.ReplicaSets[0], r.ReplicaSets[1]
	r.Deployment.Spec.Template, oldRS.Spec.Template, newRS.Spec.Template = after, before, after
	r.Seen.DryRun = fixture.Admitted(newRS)
	pods := r.Seen.Pods
	r.Seen.Pods = nil
	for _, pod := range pods {
		fixture.PodOf(r, pod.Name, oldRS, func(made *corev1.Pod) { made.Spec.NodeName = pod.Spec.NodeName })
	}
}

func TestPullFailuresStayTheSame(t *testing.T) {
	for reason, message := range map[string]string{
		"ErrImagePull":     "app:2: not found",
		"ImagePullBackOff": `Back-off pulling image "app:2": ErrImagePull: app:2: not found`,
	} {
		plan := pullFixture(prePullPodOn("n1", waitingFor(reason, message)), prePullPodOn("n2", waitingFor(reason, message))).Plan()
		if want := []string{"Image app:2 cannot be pulled: app:2: not found"}; !slices.Equal(plan.PullFailures, want) {
			t.Errorf("%s: failures are %q, want %q", reason, plan.PullFailures, want)
		}
	}
	plan := pullFixture(prePullPodOn("n1", waitingFor("ImagePullBackOff", `Back-off pulling image "app:2"`))).Plan()
	if want := []string{"Image app:2 cannot be pulled: ImagePullBackOff"}; !slices.Equal(plan.PullFailures, want) {
		t.Errorf("failures are %q, want %q", plan.PullFailures, want)
	}
}

// pulls makes a lockstep pull first, with each pod on a node of its own.
func (s *lockstep) pulls(parallel int) {
	s.pull.Parallel = parallel
	pods := sorted(s.pods.objects)
	for _, pod := range pods {
		if _, err := alter(s.world, s.pods, pod.Name, "", func(pod *corev1.Pod) { s.pull.Place(pod, len(pods)) }); err != nil {
			s.t.Fatal(err)
		}
	}
	s.rest()
	s.steps = nil
}

func TestStepsOfPullingFirst(t *testing.T) {
	s := newLockstep(t, 3, nil)
	s.pulls(2)
	before := sorted(s.pods.objects)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.expect("pull n1", "pull n2", "A marks", "B marks", "out 1",
		"pull n3", "A 3 → 2", "move 1", "B 0 → 1",
		"drop n1", "out 2", "A 2 → 1", "move 2", "B 1 → 2",
		"drop n2", "out 3", "A 1 → 0", "move 3", "B 2 → 3", "A marks", "B marks", "drop n3")
	s.intact(before)
}

// TestStepsOfPullingOnly: every node pulls, two at a time, and the pre-pull pods stay until the partition is lowered.
func TestStepsOfPullingOnly(t *testing.T) {
	s := newLockstep(t, 3, partitioned("100%"))
	s.pulls(2)
	before := sorted(s.pods.objects)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.expect("pull n1", "pull n2", "A marks", "B marks", "pull n3")
	s.waits("waiting at partition 100%: 0 of 3 pods updated; new images on 3 of 3 nodes")
	s.partition("2")
	s.rest()
	s.expect("out 1", "A 3 → 2", "move 1", "drop n2", "drop n3", "B 0 → 1", "drop n1")
	s.waits("waiting at partition 2: 1 of 3 pods updated")
	s.partition("100%")
	s.rest()
	s.expect("pull n2", "pull n3")
	s.waits("waiting at partition 100%: 1 of 3 pods updated; new images on 2 of 2 nodes")
	s.edit("undoes it", fixture.App{Image: "v1"})
	s.rest()
	s.intact(before)
}

// TestBadImageAtAPartitionThatKeepsAll: the image is found to be bad before anything restarts.
func TestBadImageAtAPartitionThatKeepsAll(t *testing.T) {
	s := newLockstep(t, 3, partitioned("100%"))
	s.pulls(3)
	s.edit("sets an image that does not exist", fixture.App{Image: "bad"})
	s.rest()
	s.pass(11 * time.Minute)
	s.rest()
	progressing := apps.DeploymentCondition(s.deployment().Status, appsv1.DeploymentProgressing)
	if progressing.Reason != deployments.ReasonTimedOut ||
		!strings.Contains(progressing.Message, "waiting for image bad on node n1: bad: not found") {
		t.Errorf("after the deadline the status says %+v", progressing)
	}
}

func TestBadImageStopsNothing(t *testing.T) {
	s := newLockstep(t, 3, nil)
	s.pulls(2)
	before := sorted(s.pods.objects)
	s.edit("sets an image that does not exist", fixture.App{Image: "bad"})
	s.rest()
	s.expect("pull n1", "pull n2", "A marks", "B marks")
	s.pass(11 * time.Minute)
	s.rest()
	s.expect()
	progressing := apps.DeploymentCondition(s.deployment().Status, appsv1.DeploymentProgressing)
	if progressing.Reason != deployments.ReasonTimedOut ||
		!strings.Contains(progressing.Message, "waiting for image bad on node n1: bad: not found") {
		t.Errorf("after the deadline the status says %+v", progressing)
	}
	if status := s.deployment().Status; status.AvailableReplicas != 3 || status.UpdatedReplicas != 0 {
		t.Errorf("the status is %+v", status)
	}
	s.edit("undoes it", fixture.App{Image: "v1"})
	s.rest()
	s.expect("drop n1", "drop n2", "A marks", "B marks")
	s.intact(before)
}

func TestDaemonPullsFirst(t *testing.T) {
	f := fixture.NewFleet(t, 3, func(f *fixture.Fleet) { f.PullsFirst(1) })
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.Expect("mark 2 true false", "pull n1", "out p1",
		"pull n2", "p1 is 2 app=v2", "drop n1", "out p2",
		"pull n3", "p2 is 2 app=v2", "drop n2", "out p3", "p3 is 2 app=v2", "mark 2 false false", "drop n3")
	f.UpdatedTo("2", "v2")
}

func TestDaemonBadImageStopsNothing(t *testing.T) {
	f := fixture.NewFleet(t, 2, func(f *fixture.Fleet) { f.PullsFirst(1) })
	f.Edit(fixture.App{Image: "bad"})
	f.Rest()
	f.Expect("mark 2 true false", "pull n1")
	if plan := f.Once(); !strings.Contains(plan.Message, "waiting for image bad on node n1: bad: not found") {
		t.Errorf("it says %q", plan.Message)
	}
	f.Edit(fixture.App{Image: "v1"})
	f.Rest()
	f.Expect("drop n1", "mark 2 false false")
	if fixture.Images(f.Seen.Pods[0]) != "app=v1" || !apps.IsTrue(f.Seen.Pods[0], corev1.PodReady) {
		t.Errorf("p1 has %s", fixture.Images(f.Seen.Pods[0]))
	}
}

func TestDaemonFallBackDeletesPrePullPods(t *testing.T) {
	f := fixture.NewFleet(t, 2, func(f *fixture.Fleet) { f.PullsFirst(2) })
	f.Edit(fixture.App{Image: "v2"})
	f.Once()
	f.Once()
	f.Pull.Observe(&f.Seen.Settings, &f.Seen.Nodes, &f.Seen.Pull)
	if got := told(f.FallBack(inplace.Reason{Code: inplace.CodeUninstalled})); got != "drop n1, drop n2" {
		t.Errorf("the fallback does %q", got)
	}
}
