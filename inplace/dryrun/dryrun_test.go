package dryrun_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

func TestDryRunOfAPod(t *testing.T) {
	r, _ := fixture.ToV2()
	const template = `{"metadata":{"name":"no","labels":{"app":"web","pod-template-hash":%q},"annotations":{"a":"1"},"finalizers":["f/f"]},
		"spec":{"containers":[{"name":"app","image":%q,"newer":1}]}}`
	for i, image := range []string{"v1", "v2"} {
		rs := r.ReplicaSets[i]
		if err := json.Unmarshal(fmt.Appendf(nil, template, rs.UID, image), &rs.Spec.Template); err != nil {
			t.Fatal(err)
		}
	}
	r.Deployment.Spec.Template, r.Seen.DryRun = r.ReplicaSets[1].Spec.Template, dryrun.Result{}
	const want = `{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"a":"1"},"finalizers":["f/f"],"generateName":"web-b-",` +
		`"labels":{"app":"web","pod-template-hash":"b"},"namespace":"shop","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet",` +
		`"name":"web-b","uid":"b","controller":true,"blockOwnerDeletion":true}]},"spec":{"containers":[{"image":"v2","name":"app","newer":1}]}}`
	plan := r.Plan()
	if plan.DryRun == nil || plan.DryRun.UpdateRevision != "b" || string(plan.DryRun.Pod) != want {
		t.Errorf("asks for %+v\nnot %s", plan, want)
	}
}

func TestDryRunOfADaemon(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v2"})
	f.Seen.DryRun = dryrun.Result{}
	plan := f.Plan()
	if plan.DryRun == nil || plan.DryRun.UpdateRevision != "2" || len(plan.Steps) > 0 {
		t.Fatalf("the plan is %+v", plan)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(plan.DryRun.Pod, pod); err != nil {
		t.Fatal(err)
	}
	if owner := metav1.GetControllerOf(pod); owner.Kind != "DaemonSet" || owner.UID != "agent" || pod.GenerateName != "agent-" ||
		pod.Labels[inplace.LabelRevisionHash] != "2" {
		t.Errorf("the pod has metadata %+v", pod.ObjectMeta)
	}
	if place := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms; len(place) != 1 ||
		place[0].MatchFields[0].Values[0] != "n1" || len(pod.Spec.Tolerations) != 6 || pod.Spec.Containers[0].Image != "v2" {
		t.Errorf("the pod has spec %+v", pod.Spec)
	}
}

func TestDryRunDecides(t *testing.T) {
	sidecar := func(image string) corev1.Container { return corev1.Container{Name: "mesh", Image: image} }
	add := func(pod *corev1.Pod, containers ...corev1.Container) {
		pod.Spec.Containers = append(pod.Spec.Containers, containers...)
	}
	for name, test := range map[string]struct {
		change func(r *deployments.Rollout, newPods, running *corev1.Pod)
		code   string
	}{
		"nothing is changed": {func(*deployments.Rollout, *corev1.Pod, *corev1.Pod) {}, ""},
		"refused": {func(r *deployments.Rollout, _, _ *corev1.Pod) {
			r.Seen.DryRun = dryrun.Result{UpdateRevision: "b", Refused: "not signed"}
		}, inplace.CodeNotAdmitted},
		"the answer is unknown": {func(r *deployments.Rollout, _, _ *corev1.Pod) {
			r.Seen.DryRun = dryrun.Result{UpdateRevision: "b", Unknown: "no dry run"}
		}, ""},
		"the image is rewritten": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			setImages(made, "mirror/v2")
			setImages(old, "mirror/v1")
		}, ""},
		"it was not rewritten before": {func(_ *deployments.Rollout, made, _ *corev1.Pod) { setImages(made, "mirror/v2") }, ""},
		"it is no longer rewritten":   {func(_ *deployments.Rollout, _, old *corev1.Pod) { setImages(old, "mirror/v1") }, ""},
		"it was, and the dry run failed": {func(r *deployments.Rollout, _, old *corev1.Pod) {
			r.Seen.DryRun = dryrun.Result{UpdateRevision: "b", Unknown: "no dry run"}
			setImages(old, "mirror/v1")
		}, inplace.CodeRewrittenImage},
		"it is rewritten, and the pod stays in service": {func(r *deployments.Rollout, made, old *corev1.Pod) {
			setImages(made, "mirror/v2")
			setImages(old, "mirror/v1")
			r.Seen.Endpoints = podstate.Endpoints{old.UID: {LastOf: "web"}}
		}, ""},
		"one of the update revision was rewritten otherwise": {func(r *deployments.Rollout, _, _ *corev1.Pod) {
			setImages(fixture.PodOf(r, "q", r.ReplicaSets[1]), "elsewhere/v2")
			r.ReplicaSets[0].Labels[inplace.LabelUpdating] = inplace.FormatTime(fixture.Start)
		}, ""},
		"a sidecar is injected": {func(_ *deployments.Rollout, made, old *corev1.Pod) { add(made, sidecar("m1")); add(old, sidecar("m1")) }, ""},
		"a sidecar's image":     {func(_ *deployments.Rollout, made, old *corev1.Pod) { add(made, sidecar("m2")); add(old, sidecar("m1")) }, ""},
		"a sidecar's image, among others in another order": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			add(made, sidecar("m2"), corev1.Container{Name: "logs"})
			add(old, corev1.Container{Name: "logs"}, sidecar("m1"))
		}, ""},
		"a sidecar's image and its arguments": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			changed := sidecar("m2")
			changed.Args = []string{"--new"}
			add(made, changed)
			add(old, sidecar("m1"))
		}, inplace.CodeInjected},
		"a sidecar's image and its CPU": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			changed := sidecar("m2")
			changed.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			add(made, changed)
			add(old, sidecar("m1"))
		}, ""},
		"a sidecar's image, and it may not restart": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			changed := sidecar("m2")
			changed.StartupProbe = &corev1.Probe{}
			add(made, changed)
			add(old, sidecar("m1"))
		}, inplace.CodeStartupProbe},
		"another sidecar of the same image": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			add(made, sidecar("m1"))
			add(old, corev1.Container{Name: "logs", Image: "m1"})
		}, inplace.CodeInjected},
		"a new sidecar":       {func(_ *deployments.Rollout, made, _ *corev1.Pod) { add(made, sidecar("m1")) }, inplace.CodeInjected},
		"no sidecar any more": {func(_ *deployments.Rollout, _, old *corev1.Pod) { add(old, sidecar("m1")) }, inplace.CodeInjected},
		"no sidecar, and the running pod is a surge pod": {func(_ *deployments.Rollout, _, old *corev1.Pod) {
			add(old, sidecar("m1"))
			metav1.SetMetaDataAnnotation(&old.ObjectMeta, inplace.AnnotationSurgePod, "true")
		}, ""},
		"an init container": {func(_ *deployments.Rollout, made, _ *corev1.Pod) {
			made.Spec.InitContainers = []corev1.Container{sidecar("m1")}
		}, inplace.CodeInjected},
		"an init container has another image": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			made.Spec.InitContainers, old.Spec.InitContainers = []corev1.Container{sidecar("m2")}, []corev1.Container{sidecar("m1")}
		}, inplace.CodeInjected},
		"a variable is new": {func(_ *deployments.Rollout, made, _ *corev1.Pod) {
			made.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PROXY"}}
		}, inplace.CodeInjected},
		"a variable is new, and the image stays the same": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			made.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PROXY"}}
			setImages(old, "v2")
		}, inplace.CodeInjected},
		"a variable has another name": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			made.Spec.Containers[0].Env, old.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PROXY"}}, []corev1.EnvVar{{Name: "HTTP_PROXY"}}
		}, inplace.CodeInjected},
		"a variable has another value": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			made.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "1"}}
			old.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "2"}}
		}, ""},
		"a pull secret is new": {func(_ *deployments.Rollout, made, _ *corev1.Pod) {
			made.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
		}, inplace.CodeInjected},
		"a pull secret is gone": {func(_ *deployments.Rollout, _, old *corev1.Pod) {
			old.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
		}, ""},
		"a volume is gone": {func(_ *deployments.Rollout, _, old *corev1.Pod) {
			old.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "ca", MountPath: "/ca"}}
		}, inplace.CodeInjected},
		"the container is dropped": {func(_ *deployments.Rollout, made, _ *corev1.Pod) { // nothing has admitted its image
			made.Spec.Containers = []corev1.Container{}
		}, inplace.CodeInjected},
		"a volume is mounted elsewhere": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			made.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "ca", MountPath: "/etc/ca"}}
			old.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "ca", MountPath: "/ca"}}
		}, inplace.CodeInjected},
		"a volume has another name": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			made.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "kube-api-access-abcde", MountPath: "/var/run"}}
			old.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "kube-api-access-fghij", MountPath: "/var/run"}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, running := fixture.ToV2()
			test.change(r, r.Seen.DryRun.Pod, running)
			plan := r.Plan()
			if got := strings.Join(plan.Decision.Reasons.Codes(), " "); got != test.code || plan.Decision.Held != (test.code == "") {
				t.Errorf("held %v: %q %s", plan.Decision.Held, got, plan.Decision.Reasons)
			}
			if out := slices.ContainsFunc(plan.Steps, steps.TakesOut); out && test.code != "" {
				t.Errorf("a pod is taken out all the same: %v", plan.Steps)
			}
		})
	}
}

// TestInjectionIsNamed: users are told what admission adds, and to which container.
func TestInjectionIsNamed(t *testing.T) {
	for want, inject := range map[string]func(spec *corev1.PodSpec){
		`container mesh with image "m1", and pod p has no container mesh`: func(spec *corev1.PodSpec) {
			spec.Containers = append(spec.Containers, corev1.Container{Name: "mesh", Image: "m1"})
		},
		"variable PROXY in container app, and pod p has no variable PROXY in container app": func(spec *corev1.PodSpec) {
			spec.Containers[0].Env = []corev1.EnvVar{{Name: "PROXY"}}
		},
	} {
		r, _ := fixture.ToV2()
		inject(&r.Seen.DryRun.Pod.Spec)
		if got := r.Plan().Decision.Reasons.String(); !strings.HasSuffix(got, "admission gives new pods "+want) {
			t.Errorf("it says %q, not %q", got, want)
		}
	}
}

// TestLabelThatVariablesRead: containers that restart would read the label of the template, and new pods that of admission.
func TestLabelThatVariablesRead(t *testing.T) {
	set := func(value string) func(*corev1.Pod) {
		return func(made *corev1.Pod) { metav1.SetMetaDataLabel(&made.ObjectMeta, fixture.ChartKey, value) }
	}
	remove := func(made *corev1.Pod) { delete(made.Labels, fixture.ChartKey) }
	for name, test := range map[string]struct {
		reads    bool
		from, to string
		admitted func(*corev1.Pod)
		code     string
	}{
		"as in the template":          {true, "1", "2", func(*corev1.Pod) {}, ""},
		"another value":               {true, "1", "2", set("3"), inplace.CodeInjected},
		"another value, read by none": {false, "1", "2", set("3"), ""},
		"it is taken off":             {true, "1", "2", remove, inplace.CodeInjected},
		"it is put on":                {true, "1", "", set("1"), inplace.CodeInjected},
		"it does not change":          {true, "2", "2", set("3"), ""},
	} {
		app := func(chart string) fixture.App { return fixture.App{Image: "v1", Reads: test.reads, Chart: chart} }
		r := fixture.New(1, app(test.to))
		fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", app(test.from), 1))
		if test.from != test.to {
			fixture.ReplicaSetOf(r, "b", app(test.to), 0)
		}
		test.admitted(r.Seen.DryRun.Pod)
		if got := strings.Join(r.Plan().Decision.Reasons.Codes(), " "); got != test.code {
			t.Errorf("%s: %q, want %q", name, got, test.code)
		}
	}
}

func TestDaemonGetsRewrittenImage(t *testing.T) {
	f := fixture.NewFleet(t, 2, func(f *fixture.Fleet) { setImages(f.Seen.Pods[0], "mirror/v1") })
	f.Edit(fixture.App{Image: "v2"})
	setImages(f.Seen.DryRun.Pod, "mirror/v2")
	f.Rest()
	for _, pod := range f.Seen.Pods {
		if pod.Labels[inplace.LabelRevisionHash] != "2" || pod.Spec.Containers[0].Image != "mirror/v2" {
			t.Errorf("%s is of revision %s with %s", pod.Name, pod.Labels[inplace.LabelRevisionHash], fixture.Images(pod))
		}
	}
}

// TestInjectedContainerRestartsWithAll: a proxy that restarts cuts off containers that do not.
func TestInjectedContainerRestartsWithAll(t *testing.T) {
	for name, test := range map[string]struct {
		from, to fixture.App
		proxy    string
		code     string
	}{
		"the only container restarts": {fixture.App{Image: "v1"}, fixture.App{Image: "v2"}, "m1", ""},
		"none restarts": {fixture.App{Image: "v1", Chart: "1"}, fixture.App{Image: "v1", Chart: "2"}, "m1",
			inplace.CodeInjected},
		"one of two restarts": {fixture.App{Image: "v1", Sidecar: "s1"}, fixture.App{Image: "v2", Sidecar: "s1"}, "m1",
			inplace.CodeInjected},
		"both restart": {fixture.App{Image: "v1", Sidecar: "s1"}, fixture.App{Image: "v2", Sidecar: "s2"}, "m1", ""},
		"one of two restarts, and the proxy has another name of its image": {fixture.App{Image: "v1", Sidecar: "s1"},
			fixture.App{Image: "v2", Sidecar: "s1"}, "m2:latest@sha256:" + strings.Repeat("0", 64), ""},
	} {
		r := fixture.New(1, test.to)
		running := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", test.from, 1))
		fixture.ReplicaSetOf(r, "b", test.to, 0)
		made := r.Seen.DryRun.Pod
		made.Spec.Containers = append(made.Spec.Containers, corev1.Container{Name: "proxy", Image: "m2"})
		running.Spec.Containers = append(running.Spec.Containers, corev1.Container{Name: "proxy", Image: test.proxy})
		if got := strings.Join(r.Plan().Decision.Reasons.Codes(), " "); got != test.code {
			t.Errorf("%s: %q, want %q", name, got, test.code)
		}
	}
}

// TestDaemonGetsInjectedImage: the injected container restarts together with the template's own, in the same pods.
func TestDaemonGetsInjectedImage(t *testing.T) {
	mesh := func(pod *corev1.Pod, image string) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "mesh", Image: image})
	}
	f := fixture.NewFleet(t, 2, func(f *fixture.Fleet) {
		for _, pod := range f.Seen.Pods {
			mesh(pod, "m1")
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "mesh", Image: "m1", Ready: true})
		}
	})
	f.Edit(fixture.App{Image: "v2"})
	mesh(f.Seen.DryRun.Pod, "m2")
	f.Rest()
	for _, pod := range f.Seen.Pods {
		if pod.Labels[inplace.LabelRevisionHash] != "2" || fixture.Images(pod) != "app=v2,mesh=m2" {
			t.Errorf("%s is of revision %s with %s", pod.Name, pod.Labels[inplace.LabelRevisionHash], fixture.Images(pod))
		}
	}
}

func TestDaemonIsRefused(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v2"})
	f.Seen.DryRun = dryrun.Result{UpdateRevision: "2", Refused: "not signed"}
	f.Once()
	f.Expect("mark 2 false true")
}

func setImages(pod *corev1.Pod, image string) { pod.Spec.Containers[0].Image = image }

// TestTolerationsOfNewPods: a pod that gets a toleration must then tolerate what a new pod does, since it can lose none.
func TestTolerationsOfNewPods(t *testing.T) {
	injected := corev1.Toleration{Key: "injected", Operator: corev1.TolerationOpExists}
	for name, test := range map[string]struct {
		tolerates string
		made, has bool // the injected one
		code      string
	}{
		"both":                       {"gpu", true, true, ""},
		"new pods only":              {"gpu", true, false, inplace.CodeInjected},
		"the running pod only":       {"gpu", false, true, inplace.CodeInjected},
		"none is added by the edit":  {"", false, true, ""},
		"neither, one by the edit":   {"gpu", false, false, ""},
		"new pods only, none edited": {"", true, false, ""},
	} {
		r := fixture.New(1, fixture.App{Image: "v2", Tolerates: test.tolerates})
		oldRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1)
		fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2", Tolerates: test.tolerates}, 0)
		running, made := fixture.PodOf(r, "p", oldRS), r.Seen.DryRun.Pod
		if test.made {
			made.Spec.Tolerations = append(made.Spec.Tolerations, injected)
		}
		if test.has {
			running.Spec.Tolerations = append(running.Spec.Tolerations, injected)
		}
		if got := strings.Join(r.Plan().Decision.Reasons.Codes(), " "); got != test.code {
			t.Errorf("%s: %q, want %q", name, got, test.code)
		}
	}
}
