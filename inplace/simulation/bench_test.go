package simulation

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
)

// furnished returns a template as large as those of real applications.
func furnished(image string) apps.Template {
	typed := fixture.App{Image: image, Sidecar: "s1"}.Template().Typed()
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}
	for i := range typed.Spec.Containers {
		c := &typed.Spec.Containers[i]
		c.ReadinessProbe, c.LivenessProbe = probe, probe
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"),
			corev1.ResourceMemory: resource.MustParse("128Mi")}
		for v := range 20 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", v), Value: "some value of it"})
		}
	}
	return fixture.AsTemplate(typed)
}

// BenchmarkPlan plans in the middle of an update at 10 %: a third of the pods is updated, a tenth is drained, the others wait.
func BenchmarkPlan(b *testing.B) {
	for _, pods := range []int{100, 1000, 3000} {
		b.Run(fmt.Sprint("Deployment/", pods), func(b *testing.B) {
			r := deploymentPartial(pods)
			b.ReportAllocs()
			for b.Loop() {
				if plan := r.Plan(); !plan.Decision.Held || plan.Progress.Moved == 0 || plan.Progress.Moving == 0 {
					b.Fatalf("%+v", plan.Progress)
				}
			}
		})
		b.Run(fmt.Sprint("DaemonSet/", pods), func(b *testing.B) {
			r := daemonSetPartial(b, pods)
			b.ReportAllocs()
			for b.Loop() {
				if plan := r.Plan(); !plan.Decision.Held || plan.Progress.Moved == 0 || plan.Progress.Moving == 0 {
					b.Fatalf("%+v", plan.Progress)
				}
			}
		})
	}
}

// BenchmarkDecision decides in the middle of an update, with as many old revisions as a workload keeps by default. Deployments come without
// pods, as in webhooks, which decide for every native write.
func BenchmarkDecision(b *testing.B) {
	b.Run("Deployment", func(b *testing.B) {
		r := deploymentPartial(100)
		r.Seen.Pods = nil
		fixture.ReplicaSetOf(&r, "h9", fixture.App{Image: "v1"}, 0).Spec.Template = furnished("h9")
		b.ReportAllocs()
		for b.Loop() {
			if !r.Decision().Held {
				b.Fatal("not held")
			}
		}
	})
	b.Run("DaemonSet", func(b *testing.B) {
		f := fleetPartial(b, 100)
		for i := range 10 {
			f.SetTemplate(furnished(fmt.Sprint("h", i)))
		}
		f.SetTemplate(furnished("v2"))
		b.ReportAllocs()
		for b.Loop() {
			if !f.Decision().Held {
				b.Fatal("not held")
			}
		}
	})
}

// stageOf reports whether the pod is updated, and whether it is drained.
func stageOf(pod, pods int) (done, isDrained bool) {
	return pod < pods/3, pod >= pods/3 && pod < pods/3+pods/10
}

func deploymentPartial(pods int) deployments.Rollout {
	r := fixture.New(int32(pods), fixture.App{Image: "v2"})
	r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.Parse("10%"))
	r.Deployment.Spec.Template = furnished("v2")
	r.Seen.Settings = inplace.Settings{Drain: inplace.DefaultDrain, PrePullParallelism: inplace.DefaultPrePullParallelism,
		Surge: inplace.SurgeNeeded}
	for i := range 9 { // the history
		old := fixture.ReplicaSetOf(r, fmt.Sprint("h", i), fixture.App{Image: "v1"}, 0)
		old.Spec.Template = furnished(fmt.Sprint("h", i))
	}
	oldRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, int32(pods-pods/3))
	newRS := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, int32(pods/3))
	oldRS.Spec.Template, newRS.Spec.Template = furnished("v1"), furnished("v2")
	oldRS.Labels[inplace.LabelUpdating], newRS.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
	r.Seen.DryRun = fixture.Admitted(newRS)
	r.Seen.Endpoints = podstate.Endpoints{}
	for i := range pods {
		addPartialTo(r, i, pods, oldRS, newRS)
	}
	return *r
}

func addPartialTo(r *deployments.Rollout, i, pods int, oldRS, newRS *apps.ReplicaSet) {
	done, isDrained := stageOf(i, pods)
	owner := oldRS
	if done {
		owner = newRS
	}
	pod := fixture.PodOf(r, fmt.Sprintf("p%04d", i), owner)
	pod.Spec.NodeName = fmt.Sprint("n", i/30)
	if isDrained {
		fixture.Out(pod)
		r.Seen.Endpoints[pod.UID] = podstate.Endpoint{OutSince: fixture.Start}
	}
	if i%30 == 0 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node.Status.Images = imagesOnNode("v1", "v2", "s1")
		r.Seen.Nodes = append(r.Seen.Nodes, node)
	}
}

// imagesOnNode returns what a kubelet lists: those images, and images of other workloads.
func imagesOnNode(names ...string) []corev1.ContainerImage {
	var images []corev1.ContainerImage
	for i := range 40 {
		images = append(images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example/other/app-%d:v1", i)}})
	}
	for _, name := range names {
		images = append(images, corev1.ContainerImage{Names: []string{"docker.io/library/" + name + ":latest"}})
	}
	return images
}

func daemonSetPartial(tb testing.TB, nodes int) controllerrevisions.Rollout {
	return fleetPartial(tb, nodes).Rollout
}

func fleetPartial(tb testing.TB, nodes int) *fixture.Fleet {
	f := fixture.NewFleet(tb, 0)
	f.DaemonSet.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.Parse("10%"))}
	f.Seen.Settings = inplace.Settings{Drain: inplace.DefaultDrain, PrePullParallelism: inplace.DefaultPrePullParallelism}
	f.Revisions = nil
	f.SetTemplate(furnished("v1"))
	f.SetTemplate(furnished("v2"))
	f.Revisions[1].Labels[inplace.LabelUpdating] = fixture.Begun
	f.Seen.Endpoints, f.Seen.Now = podstate.Endpoints{}, fixture.Start.Add(time.Second)
	for i := range nodes {
		addPartial(f, i, nodes)
	}
	return f
}

func addPartial(f *fixture.Fleet, i, nodes int) {
	done, isDrained := stageOf(i, nodes)
	pod := f.AddPod(fmt.Sprintf("p%04d", i), fmt.Sprint("n", i))
	hash := "1"
	if done {
		hash = "2"
	}
	pod.Labels[inplace.LabelRevisionHash] = hash
	pod.Spec.Containers = furnished("v" + hash).Typed().Spec.Containers
	f.AddNode(pod.Spec.NodeName).Status.Images = imagesOnNode("v1", "v2", "s1")
	if isDrained {
		fixture.Out(pod)
		f.Seen.Endpoints[pod.UID] = podstate.Endpoint{OutSince: fixture.Start}
	}
}
