package simulation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/steps"
)

func TestPrePullPodPullsAsThePodWould(t *testing.T) {
	class, priority := "gvisor", int32(2_000_000_000)
	r := pullFixture(func(r *deployments.Rollout) {
		spec := &r.Seen.Pods[0].Spec
		spec.ServiceAccountName, spec.ImagePullSecrets = "shop", []corev1.LocalObjectReference{{Name: "registry"}}
		spec.Tolerations, spec.RuntimeClassName = []corev1.Toleration{{Key: "dedicated"}}, &class
		spec.PriorityClassName, spec.Priority = "system-node-critical", &priority
		spec.Containers[1].Image = "side:0"
		r.Seen.Pods[0].Annotations = map[string]string{inplace.AnnotationMove: `{"hash":"a","containers":{"side":{"image":"side:0"}}}`}
	})
	var prePullPod *corev1.Pod
	for _, step := range r.Plan().Steps {
		if create, ok := step.(steps.CreatePrePullPod); ok && prePullPod == nil {
			prePullPod = create.Pod
		}
	}
	if prePullPod == nil {
		t.Fatal("no pre-pull pod is created")
	}
	spec := prePullPod.Spec
	if spec.NodeName != "n1" || spec.ServiceAccountName != "shop" || spec.ImagePullSecrets[0].Name != "registry" ||
		spec.Tolerations[0].Key != "dedicated" || *spec.RuntimeClassName != class {
		t.Errorf("it does not pull as the pod would: %+v", spec)
	}
	if spec.PriorityClassName != "" || spec.Priority != nil || *spec.AutomountServiceAccountToken {
		t.Errorf("it has what only the pod may have: %+v", spec)
	}
	if got := strings.Join(steps.References(prePullPod), " "); got != "app:2 side:1" || len(spec.Containers[0].VolumeMounts) != 2 {
		t.Errorf("its images are %q, mounted %+v", got, spec.Containers[0].VolumeMounts)
	}
	if spec.Containers[0].Image != fixture.WaitImage.Image || spec.Containers[0].Args[0] != "wait" {
		t.Errorf("it runs %+v", spec.Containers[0])
	}
	if prePullPod.Labels["app"] != "" || prePullPod.Labels[inplace.LabelPrePull] != "uid-web" ||
		!metav1.IsControlledBy(prePullPod, r.Deployment) {
		t.Errorf("it could be taken for one of the pods: %+v", prePullPod.ObjectMeta)
	}
}

func TestPrePullPodNames(t *testing.T) {
	long := fixture.NewDeployment(1, fixture.App{Image: "v1"})
	long.Name = strings.Repeat("a", 40) + strings.Repeat(".", 60)
	seen := map[string]bool{}
	for _, newRS := range []*apps.ReplicaSet{{ObjectMeta: metav1.ObjectMeta{UID: "a"}}, {ObjectMeta: metav1.ObjectMeta{UID: "b"}}} {
		for _, node := range []string{"n1", "n2"} {
			name := prepull.OwnedBy(long, newRS.UID, "Deployment", long).Name(node)
			if len(name) > 63 || strings.Contains(name, ".-") || seen[name] {
				t.Errorf("%q is no name for update revision %s on %s", name, newRS.UID, node)
			}
			seen[name] = true
		}
	}
}

func TestControllerOfPrePullPods(t *testing.T) {
	f := fixture.NewFleet(t, 1)
	owner := prepull.OwnedBy(f.DaemonSet, f.Revisions[0].UID, "ControllerRevision", f.Revisions[0]).Controller
	if owner.Kind != "ControllerRevision" || owner.UID != "1" || !*owner.Controller {
		t.Errorf("the controller is %+v", owner)
	}
}

func TestWaiterOf(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "mesh", Image: "mesh:1"},
		{Name: "manager", Image: "own:1", Command: []string{"/stayput", "manager"}, Args: []string{"--x"}}}}}
	w := prepull.WaitImageOf(pod, "manager")
	if w.Image != "own:1" || strings.Join(append(w.Command, w.Args...), " ") != "/stayput wait" {
		t.Errorf("the waiter is %+v", w)
	}
}

// TestUserOfPrePullPods checks that a pre-pull pod asks for the user that the manager's pod asks for. What admission gave to the manager's
// container alone is no user for other namespaces.
func TestUserOfPrePullPods(t *testing.T) {
	user, group := int64(65532), int64(1)
	for name, test := range map[string]struct {
		pod         *corev1.PodSecurityContext
		container   *corev1.SecurityContext
		user, group *int64
	}{
		"the pod's user":              {&corev1.PodSecurityContext{RunAsUser: &user, RunAsGroup: &group}, nil, &user, &group},
		"no user":                     {&corev1.PodSecurityContext{}, nil, nil, nil},
		"no security context":         {nil, nil, nil, nil},
		"the user that admission set": {&corev1.PodSecurityContext{}, &corev1.SecurityContext{RunAsUser: &user}, nil, nil},
	} {
		manager := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: test.pod,
			Containers: []corev1.Container{{Name: "manager", Image: "own:1", SecurityContext: test.container}}}}
		r := pullFixture(func(*deployments.Rollout) {})
		owner := prepull.OwnedBy(r.Deployment, r.UpdateRevision().UID, "Deployment", r.Deployment)
		got := prepull.NewPod(owner, r.Seen.Pods[0], nil, prepull.WaitImageOf(manager, "manager")).Spec.SecurityContext
		if got.RunAsUser != test.user || got.RunAsGroup != test.group || !*got.RunAsNonRoot {
			t.Errorf("%s: it runs as %v", name, got)
		}
	}
}
