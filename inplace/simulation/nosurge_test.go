package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
)

func TestWhyNoSurge(t *testing.T) {
	taking := func(ports ...corev1.ContainerPort) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}, {Name: "side", Ports: ports}}}
	}
	inHostNetwork := func(spec corev1.PodSpec) corev1.PodSpec {
		spec.HostNetwork = true
		return spec
	}
	having := func(limits ...corev1.ResourceName) corev1.PodSpec {
		list := corev1.ResourceList{}
		for _, name := range limits {
			list[name] = resource.MustParse("1")
		}
		return corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Limits: list}}}}
	}
	claiming := corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}}}
	sidecar := corev1.PodSpec{InitContainers: []corev1.Container{{Name: "log", Ports: []corev1.ContainerPort{{HostPort: 24}}}}}
	for name, c := range map[string]struct {
		spec  corev1.PodSpec
		claim string
		want  string // a part of the reason; empty for none
	}{
		"nothing":           {taking(), "", ""},
		"a port of its own": {taking(corev1.ContainerPort{ContainerPort: 80}), "", ""},
		"a port of the node": {taking(corev1.ContainerPort{ContainerPort: 80}, corev1.ContainerPort{ContainerPort: 81, HostPort: 8081}), "",
			"port 8081 of its node"},
		"one of a sidecar":         {sidecar, "", "port 24 of its node"},
		"in the node's network":    {inHostNetwork(taking(corev1.ContainerPort{ContainerPort: 80})), "", "port 80 of its node"},
		"there, without any ports": {inHostNetwork(taking()), "", ""},
		"a volume":                 {taking(), "data", "claim data"},
		"a device":                 {having("memory", "example.com/gpu", "example.com/nic"), "", "device for its example.com/gpu"},
		"a claim of a device":      {claiming, "", "device for its resourceclaim gpu"},
		"memory":                   {having("memory", "hugepages-2Mi", "node.kubernetes.io/own"), "", ""},
	} {
		if got := readiness.WhyNoSurge(c.spec, c.claim); (got == "") != (c.want == "") || !strings.Contains(strings.ToLower(got), c.want) {
			t.Errorf("%s: no surge since %q, not %q", name, got, c.want)
		}
	}
}

func TestForOneNode(t *testing.T) {
	type modes = []corev1.PersistentVolumeAccessMode
	const one, pod, many, read = corev1.ReadWriteOnce, corev1.ReadWriteOncePod, corev1.ReadWriteMany, corev1.ReadOnlyMany
	for name, c := range map[string]struct {
		asked, bound modes
		want         bool
	}{
		"one node":             {modes{one}, modes{one}, true},
		"one pod":              {modes{pod}, modes{pod}, true},
		"many nodes":           {modes{many}, modes{many}, false},
		"read by many":         {modes{read}, modes{read}, false},
		"either":               {modes{one}, modes{one, many}, false},
		"not bound yet":        {modes{one}, nil, true},
		"not bound, for many":  {modes{one, many}, nil, false},
		"bound for fewer only": {modes{one, many}, modes{one}, true},
	} {
		claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{AccessModes: c.asked},
			Status: corev1.PersistentVolumeClaimStatus{AccessModes: c.bound}}
		if got := readiness.SingleNode(claim); got != c.want {
			t.Errorf("%s: for one node is %t", name, got)
		}
	}
}

func TestDryRunAsksForClaims(t *testing.T) {
	r := fixture.New(2, fixture.App{Image: "v2"})
	fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2)
	template, err := apps.ParseTemplate([]byte(`{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"v2"}],
		"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"data"}},{"name":"e","emptyDir":{}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Deployment.Spec.Template = template
	newRS := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
	newRS.Spec.Template = template
	old, err := apps.ParseTemplate([]byte(strings.ReplaceAll(fixture.RawOf(template), "v2", "v1")))
	if err != nil {
		t.Fatal(err)
	}
	r.ReplicaSets[0].Spec.Template = old
	fixture.PodOf(r, "p", r.ReplicaSets[0])
	r.Seen.DryRun = dryrun.Result{}
	if plan := r.Plan(); plan.DryRun == nil || !slices.Equal(plan.DryRun.Claims, []string{"data"}) {
		t.Errorf("it asks for %+v", plan.DryRun)
	}
}

func TestStepsWhereNoSecondPodCanRun(t *testing.T) {
	s, before := surging(t, 1, nil)
	s.claim = "data"
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.expect("A marks", "B marks", "out 1", "A 1 → 0", "move 1", "B 0 → 1", "A marks", "B marks")
	s.intact(before)
	if s.stalled != "" {
		t.Errorf("it says %q", s.stalled)
	}
}

// TestNoneMayBeUnavailableWhereNoSecondPodCanRun: a second pod may be able to run after all, so the update waits for one. If none comes,
// its message says why.
func TestNoneMayBeUnavailableWhereNoSecondPodCanRun(t *testing.T) {
	s, before := surging(t, 1, surge("0", "1"))
	s.claim, s.room = "data", s.placed()
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	plan := s.rollout().Plan()
	const want = "waiting for a second pod, as maxUnavailable is 0, and not every node can mount its PersistentVolumeClaim data"
	if !strings.Contains(plan.Message, want) {
		t.Errorf("it says %q", plan.Message)
	}
	s.wait(3 * time.Minute)
	s.expect(begin(2)...)
	s.room = plenty
	s.wait(time.Minute)
	s.intact(before)
}

// TestNoNodeForASurgePod: the deadline is an hour, and the scheduler finds no node.
func TestNoNodeForASurgePod(t *testing.T) {
	s, before := surging(t, 3, func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = new(int32(3600)) })
	s.room = s.placed()
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.until(func() bool { return s.made == 4 })
	made := s.now
	s.wait(deployments.UnplaceableAfter - time.Second)
	if s.moved(1)() || slices.Contains(s.steps, "4 surge pod to remove") {
		t.Errorf("%s after its creation surge pod 4 is not waited for any more: %q", s.now.Sub(made), s.steps)
	}
	s.wait(time.Minute)
	if s.made != 4 || !strings.HasPrefix(s.stalled, "no room for surge pods: no node has room") {
		t.Errorf("%d pods were created, and it says %q", s.made, s.stalled)
	}
	s.intact(before)
}
