package simulation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// toV2 returns an update from v1 to v2 that is about to begin, and the running pod.
func toV2() (r *deployments.Rollout, running *corev1.Pod) {
	r = fixture.New(1, fixture.App{Image: "v2"})
	oldRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1)
	fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
	return r, fixture.PodOf(r, "p", oldRS)
}

func TestDryRunComesFirst(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*deployments.Rollout)
		asks   bool
	}{
		"known":                      {func(*deployments.Rollout) {}, false},
		"unknown":                    {func(r *deployments.Rollout) { r.Seen.DryRun = dryrun.Result{} }, true},
		"of another update revision": {func(r *deployments.Rollout) { r.Seen.DryRun.UpdateRevision = "a" }, true},
		"no update revision yet":     {func(r *deployments.Rollout) { r.ReplicaSets, r.Seen.DryRun = r.ReplicaSets[:1], dryrun.Result{} }, false},
		"paused":                     {func(r *deployments.Rollout) { r.Deployment.Spec.Paused, r.Seen.DryRun = true, dryrun.Result{} }, false},
		"native":                     {func(r *deployments.Rollout) { r.Seen.Mode, r.Seen.DryRun = inplace.ModeNone, dryrun.Result{} }, false},
		"a new leader in the middle": {func(r *deployments.Rollout) { r.Seen.DryRun = dryrun.Result{}; fixture.Drained(r.Seen.Pods[0]) }, true},
		"a native rollout in progress": {func(r *deployments.Rollout) {
			r.ReplicaSets[1].Spec.Replicas, r.Seen.DryRun = new(int32(1)), dryrun.Result{}
		}, false},
		"paused in the middle": {func(r *deployments.Rollout) {
			r.Deployment.Spec.Paused, r.Seen.DryRun = true, dryrun.Result{}
			markAll(r)
		}, true},
		"only marks are left to remove": {func(r *deployments.Rollout) {
			r.Deployment.Spec.Template, r.Seen.DryRun = fixture.App{Image: "v1"}.Template(), dryrun.Result{}
			markAll(r)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := toV2()
			test.change(r)
			plan := r.Plan()
			if (plan.DryRun != nil) != test.asks {
				t.Fatalf("asks for %+v", plan.DryRun)
			}
			if test.asks && slices.ContainsFunc(plan.Steps, func(step steps.Step) bool {
				_, isStatus := step.(steps.PatchStatus)
				return !isStatus
			}) {
				t.Errorf("without an answer it does %v", plan.Steps)
			}
		})
	}
}

// markAll marks every ReplicaSet as updating.
func markAll(r *deployments.Rollout) {
	for _, rs := range r.ReplicaSets {
		rs.Labels[inplace.LabelUpdating] = times.Seconds(fixture.Start)
	}
}

func TestDryRunOfAPod(t *testing.T) {
	r, _ := toV2()
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
		"it is rewritten, without a gate": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			setImages(made, "mirror/v2")
			setImages(old, "mirror/v1")
			fixture.Ungated(old)
		}, ""},
		"one of the update revision was rewritten otherwise": {func(r *deployments.Rollout, _, _ *corev1.Pod) {
			setImages(fixture.PodOf(r, "q", r.ReplicaSets[1]), "elsewhere/v2")
			r.ReplicaSets[0].Labels[inplace.LabelUpdating] = times.Seconds(fixture.Start)
		}, ""},
		"a sidecar is injected": {func(_ *deployments.Rollout, made, old *corev1.Pod) { add(made, sidecar("m1")); add(old, sidecar("m1")) }, ""},
		"another sidecar": {func(_ *deployments.Rollout, made, old *corev1.Pod) { add(made, sidecar("m2")); add(old, sidecar("m1")) },
			inplace.CodeInjected},
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
		"a variable has another value": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			made.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "1"}}
			old.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "2"}}
		}, ""},
		"a volume is gone": {func(_ *deployments.Rollout, _, old *corev1.Pod) {
			old.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "ca", MountPath: "/ca"}}
		}, inplace.CodeInjected},
		"a volume has another name": {func(_ *deployments.Rollout, made, old *corev1.Pod) {
			made.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "kube-api-access-abcde", MountPath: "/var/run"}}
			old.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "kube-api-access-fghij", MountPath: "/var/run"}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, running := toV2()
			test.change(r, r.Seen.DryRun.Pod, running)
			plan := r.Plan()
			if got := strings.Join(plan.Decision.Reasons.Codes(), " "); got != test.code || plan.Decision.Held != (test.code == "") {
				t.Errorf("held %v: %q %s", plan.Decision.Held, got, plan.Decision.Reasons)
			}
			if closes := slices.ContainsFunc(plan.Steps, steps.Closes); closes && test.code != "" {
				t.Errorf("a gate is closed all the same: %v", plan.Steps)
			}
		})
	}
}

// TestKubeletsThatDoNotRestartSidecars: on such kubelets pods would wait for ever.
func TestKubeletsThatDoNotRestartSidecars(t *testing.T) {
	mesh1, mesh2, app2 := fixture.App{Image: "v1", Mesh: "m1"}, fixture.App{Image: "v1", Mesh: "m2"}, fixture.App{Image: "v2", Mesh: "m1"}
	for name, test := range map[string]struct {
		kubelet string
		to      fixture.App
		code    string
	}{
		"too old":                      {"v1.31.14", mesh2, inplace.CodeOldKubelet},
		"the first that does":          {"v1.32.0", mesh2, ""},
		"the answer is unknown":        {"fake", mesh2, inplace.CodeOldKubelet},
		"too old, and no sidecar does": {"v1.31.14", app2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, test.to)
			node := fixture.MountingNode("n1")
			node.Status.NodeInfo.KubeletVersion = test.kubelet
			r.Seen.Nodes = []*corev1.Node{node}
			oldRS := fixture.ReplicaSetOf(r, "a", mesh1, 1)
			fixture.ReplicaSetOf(r, "b", test.to, 0)
			fixture.PodOf(r, "p", oldRS, func(pod *corev1.Pod) { pod.Spec.NodeName = "n1" })
			if got := strings.Join(r.Plan().Decision.Reasons.Codes(), " "); got != test.code {
				t.Errorf("a Deployment's is native for %q, want %q", got, test.code)
			}

			f := fixture.NewFleet(t, 1)
			f.Edit(mesh1)
			f.Seen.Pods[0].Spec.InitContainers, f.Seen.Pods[0].Status.InitContainerStatuses = r.Seen.Pods[0].Spec.InitContainers,
				r.Seen.Pods[0].Status.InitContainerStatuses
			f.Seen.Pods[0].Labels[inplace.LabelRevisionHash] = "2"
			f.Seen.Nodes[0].Status.NodeInfo.KubeletVersion = test.kubelet
			f.Edit(test.to)
			if got := strings.Join(f.Plan().Decision.Reasons.Codes(), " "); got != test.code {
				t.Errorf("a DaemonSet's is native for %q, want %q", got, test.code)
			}
		})
	}
}

func setImages(pod *corev1.Pod, image string) { pod.Spec.Containers[0].Image = image }

// TestRewrittenImages: pods get the images that admission gives to new pods. All else is as usual.
func TestRewrittenImages(t *testing.T) {
	for name, ungated := range map[string]bool{"gated": false, "without gates": true} {
		t.Run(name, func(t *testing.T) {
			s := newLockstep(t, 2, nil, ungated)
			s.mirror = true
			before := sorted(s.pods.objects)
			for _, image := range []string{"v2", "v3"} {
				s.edit("sets the image", fixture.App{Image: image})
				s.rest()
				s.intact(before)
			}
			s.steps = nil
			s.edit("sets a label", fixture.App{Image: "v3", Chart: "c2"})
			s.rest()
			s.expect("C marks", "D marks", "C 2 → 1", "move 1", "D 0 → 1", "C 1 → 0", "move 2", "D 1 → 2", "C marks", "D marks")
			s.intact(before)
			for _, pod := range sorted(s.pods.objects) {
				if got := fixture.Images(pod); got != "app=mirror/v3" {
					t.Errorf("%s has %s", pod.Name, got)
				}
			}
		})
	}
}

// TestRewrittenImageGoesBack: a pod without gate restarts, and the update is undone or falls back. The pod gets the image it had.
func TestRewrittenImageGoesBack(t *testing.T) {
	for name, ends := range map[string]func(*lockstep){
		"undone":            func(s *lockstep) { s.edit("undoes", fixture.App{Image: "v1", Sidecar: "s1"}) },
		"no longer managed": func(s *lockstep) { s.mode = inplace.ModeRecreate },
	} {
		t.Run(name, func(t *testing.T) {
			s := newLockstep(t, 1, nil, true)
			s.mirror = true
			s.edit("sets the images", fixture.App{Image: "v1", Sidecar: "s1"})
			s.rest()
			s.steps = nil
			s.edit("sets one image", fixture.App{Image: "v2", Sidecar: "s1"})
			s.until(s.moved(1))
			if got := fixture.Images(sorted(s.pods.objects)[0]); got != "app=mirror/v2,side=mirror/s1" {
				t.Fatalf("in the middle the pod has %s", got)
			}
			first := sorted(s.pods.objects)[0].Name
			ends(s)
			s.steps = nil
			s.until(s.moved(1))
			if got := fixture.Images(s.pods.objects[first]); got != "app=mirror/v1,side=mirror/s1" {
				t.Errorf("the pod went back to %s", got)
			}
		})
	}
}

// TestRewrittenSidecar: a sidecar of the template gets the image that admission makes of the template's.
func TestRewrittenSidecar(t *testing.T) {
	s := newLockstep(t, 1, func(d *apps.Deployment) { d.Spec.Template = fixture.App{Image: "v1", Mesh: "m1"}.Template() }, false)
	s.mirror = true
	before := sorted(s.pods.objects)
	s.edit("sets the sidecar's image", fixture.App{Image: "v1", Mesh: "m2"})
	s.rest()
	if got := fixture.Images(s.pods.objects[before[0].Name]); got != "app=mirror/v1,mesh=mirror/m2" {
		t.Errorf("the pod has %s", got)
	}
	s.intact(before)
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

func TestDaemonIsRefused(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v2"})
	f.Seen.DryRun = dryrun.Result{UpdateRevision: "2", Refused: "not signed"}
	f.Once()
	f.Expect("mark 2 false true")
}
